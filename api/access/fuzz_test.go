package access

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzIdentify: whoever gets past the guard is the holder of a token, who the proxy says it is, or
// local by an address of this machine; anybody else is told why not (O11).
func FuzzIdentify(f *testing.F) {
	const held = "quipu_ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, seed := range [][5]string{
		{"Bearer " + held, "shop.example", "192.0.2.1:5", "", ""},
		{"basic eDpxdWlwdV9BQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWg==", "shop.example", "192.0.2.1:5", "", ""},
		{"", "localhost:8080", "127.0.0.1:5", "", ""},
		{"", "localhost.evil.example", "127.0.0.1:5", "", ""},
		{"", "x", "10.1.2.3:5", "ann", "operator"},
		{"Bearer x", "[::1]:1", "[::ffff:10.0.0.1]:5", "ann\n", "root"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4])
	}
	ann, local := Who{Name: "token", Role: Client}, Who{Name: "local", Role: Operator}
	g := New(Config{
		Local: &local, Logger: slog.New(slog.DiscardHandler),
		Tokens: func(_ context.Context, token string) (Who, bool, error) {
			if strings.HasSuffix(token, "A") {
				return Who{}, false, errors.New("away")
			}
			return ann, token == held, nil
		},
		Proxy: &Proxy{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Header: "X-User", RoleHeader: "X-Role"},
	})
	f.Fuzz(func(t *testing.T, authorization, host, remote, user, role string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host, r.RemoteAddr = host, remote
		r.Header.Set("Authorization", authorization)
		r.Header.Set("X-User", user)
		r.Header.Set("X-Role", role)
		var who *Who
		w := httptest.NewRecorder()
		g.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			v := Of(r.Context())
			who = &v
		})).ServeHTTP(w, r)
		if who == nil {
			require.Contains(t,
				[]int{http.StatusUnauthorized, http.StatusMisdirectedRequest, http.StatusServiceUnavailable}, w.Code)
			return
		}
		require.True(t, who.Role.Valid())
		require.NoError(t, CheckName(who.Name))
		switch from, _ := netip.ParseAddrPort(remote); {
		case user != "" && netip.MustParsePrefix("10.0.0.0/8").Contains(from.Addr().Unmap()):
			require.Equal(t, user, who.Name)
			require.True(t, role == "" && who.Role == Viewer || string(who.Role) == role)
		case authorization != "":
			_, password, _ := r.BasicAuth()
			require.True(t, password == held || strings.HasSuffix(authorization, held))
			require.Equal(t, ann.Name, who.Name)
		default:
			require.Equal(t, local.Name, who.Name)
			require.Regexp(t, `(?i)^(localhost|127\.[0-9.]+|\[?::1\]?|\[?::ffff:.*)(:.*)?$`, host)
		}
	})
}
