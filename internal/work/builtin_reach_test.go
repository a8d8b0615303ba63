package work

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// S14: what is called by default. Loopback and private addresses are services; the rest of
// what is inside is refused, also where another address stands for it.
func TestS14ReservedAddresses(t *testing.T) {
	t.Parallel()
	called := []string{
		"127.0.0.1", "::1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "fd12::1", "100.64.0.1", "93.184.216.34", "2606:2800::1",
		"::ffff:127.0.0.1", "64:ff9b::5db8:d822", "64:ff9b:1::5db8:d822", "2002:5db8:d822::1",
	}
	refused := map[string][]string{
		"unspecified": {"0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0", "64:ff9b::0.0.0.0"},
		"link-local": {
			"169.254.169.254", "169.254.170.2", "fe80::1", "fe80::1%eth0",
			"::ffff:169.254.169.254",   // mapped
			"::169.254.169.254",        // compatible
			"::ffff:0:169.254.169.254", // translated
			"64:ff9b::169.254.169.254", // NAT64
			"64:ff9b:1::169.254.169.254", "64:ff9b:1:a9fe:a9:fe00::",
			"2002:a9fe:a9fe::1",                   // 6to4
			"2001:0:a9fe:a9fe::1",                 // Teredo's server
			"2001:0:102:304:0:0:5601:5601",        // and its client
			"2606:2800::200:5efe:169.254.169.254", // ISATAP
		},
		"multicast":      {"224.0.0.1", "239.1.2.3", "ff02::1", "::ffff:224.0.0.1"},
		"broadcast":      {"255.255.255.255"},
		"cloud metadata": {"fd00:ec2::254", "fd20:ce::254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:42::42", "::ffff:100.100.100.200"},
	}
	open, err := newReach(nil, nil)
	require.NoError(t, err)
	for _, ip := range called {
		require.NoError(t, open.check("h", netip.MustParseAddr(ip)), ip)
	}
	for why, ips := range refused {
		for _, ip := range ips {
			require.ErrorContains(t, open.check("h", netip.MustParseAddr(ip)), why, ip)
		}
	}
}

// S14: what is denied is denied; a reserved address is opened only by an entry within its
// range; a list of what is allowed is all that is called.
func TestS14Precedence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allow, deny string
		host, ip    string
		why         string
	}{
		{"", "10.0.0.0/8", "h", "10.1.2.3", "its address is denied"},
		{"", "10.0.0.0/8", "h", "64:ff9b::10.1.2.3", "its address is denied"},
		{"", "::ffff:10.0.0.0/104", "h", "10.1.2.3", "its address is denied"},
		{"", "10.0.0.0/8", "h", "11.1.2.3", ""},
		{"10.1.2.3", "10.0.0.0/8", "h", "10.1.2.3", "its address is denied"},
		{"api.example", "", "api.example", "10.1.2.3", ""},
		{" API.example. ", "", "api.example", "10.1.2.3", ""},
		{"api.example", "", "other.example", "10.1.2.3", "neither the address nor its name"},
		{"api.example,10.0.0.0/8", "", "other.example", "10.1.2.3", ""},
		{"api.example", "", "api.example", "169.254.169.254", "link-local"},
		{"0.0.0.0/0,::/0", "", "h", "169.254.169.254", "link-local"},
		{"0.0.0.0/0", "", "h", "64:ff9b::5db8:d822", "neither"},
		{"169.254.1.5", "", "h", "169.254.1.5", ""},
		{"169.254.1.5", "", "h", "169.254.169.254", "link-local"},
		{"169.254.0.0/16", "169.254.169.254", "h", "169.254.169.254", "its address is denied"},
		{"169.254.0.0/16", "169.254.169.254", "h", "169.254.1.5", ""},
		{"fe80::/10", "", "h", "fe80::1%eth0", ""},
	} {
		r, err := newReach(listed(c.allow), listed(c.deny))
		require.NoError(t, err)
		err = r.check(c.host, netip.MustParseAddr(c.ip))
		if c.why == "" {
			require.NoError(t, err, "%+v", c)
		} else {
			require.ErrorContains(t, err, c.why, "%+v", c)
		}
	}
}

func TestS14MistakesInRules(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", "10.0.0.0/33", "http://h", "h:80", "*.example", "[::1]", "2852039166", "0x7f.1", "a b", "fe80::1%eth0"} {
		r := workers.New()
		workers.Builtins{HTTPDeny: []string{entry}}.Register(r)
		require.ErrorContains(t, r.Check(), fmt.Sprintf("http-deny %q", entry))
	}
	r := workers.New()
	workers.Builtins{HTTPAllow: make([]string, MaxHTTPRules+1)}.Register(r)
	require.ErrorContains(t, r.Check(), "the limit is 1024")
}

// local is a server on loopback whose hits are counted, and its port.
func local(t *testing.T) (port string, hits *atomic.Int64) {
	t.Helper()
	hits = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	return u.Port(), hits
}

// S14: the address is looked at when the connection is made, on every redirect, and after
// the name was resolved. A call that is refused ends the activity with 403, and is a
// recorded result of its effect.
func TestS14RefusedCalls(t *testing.T) {
	t.Parallel()
	port, hits := local(t)
	inside := "http://0.0.0.0:" + port + "/latest"
	outside := httptest.NewServer(http.RedirectHandler(inside, http.StatusFound))
	t.Cleanup(outside.Close)
	h := builtinHouse(t, workers.Builtins{HTTPDeny: []string{"localhost", "127.0.0.2"}})
	for i, input := range []string{
		fmt.Sprintf(`{"url":%q}`, inside),
		fmt.Sprintf(`{"url":%q}`, outside.URL),
		fmt.Sprintf(`{"url":"http://[::ffff:0.0.0.0]:%s/"}`, port),
		fmt.Sprintf(`{"url":"http://LOCALHOST.:%s/"}`, port),
		fmt.Sprintf(`{"url":"http://127.0.0.2:%s/"}`, port),
		fmt.Sprintf(`{"url":%q,"method":"POST"}`, inside),
		fmt.Sprintf(`{"url":%q,"method":"POST","verify":{"url":"http://127.0.0.1:%s/"}}`, inside, port),
	} {
		q := ask("http", byte(i), input)
		r := h.one(q)
		failedWith(t, r, journal.ResponseTerminal, 403, wire.ClassRefused, "http does not call")
		if rows := h.store.Rows(guid(t, q)); len(rows) > 0 {
			require.Equal(t, store.EffectCompleted, rows[0].State)
		}
	}
	require.Zero(t, hits.Load())
	require.Equal(t, 200, h.one(ask("http", 99, fmt.Sprintf(`{"url":"http://127.0.0.1:%s/"}`, port))).Code)
}

// S14: a proxy would make the connection where nothing is checked.
func TestS14NoProxy(t *testing.T) {
	t.Parallel()
	require.Nil(t, newHTTPTransport(reach{}).Proxy)
}

// FuzzReach: the lists of what http may call are read or refused. What is denied is not called,
// whatever is allowed; an address that is reserved only where it is allowed by itself; and where
// something is allowed, nothing else (S14).
func FuzzReach(f *testing.F) {
	for _, seed := range [][3]string{
		{"", "", "127.0.0.1"},
		{"169.254.169.254", "", "169.254.169.254"},
		{"bank.example,10.0.0.0/8", "10.0.0.7", "10.0.0.7"},
		{"0.0.0.0/0,::/0", "", "64:ff9b::a9fe:a9fe"},
		{"", "127.0.0.0/8", "::ffff:127.0.0.1"},
		{"fe80::/10", "", "fe80::1%eth0"},
		{"::ffff:10.0.0.0/104", "", "2002:0a00:0001::"},
		{"a/b", "*.example", "x"},
	} {
		f.Add(seed[0], seed[1], "bank.example", seed[2])
	}
	f.Fuzz(func(t *testing.T, allow, deny, host, address string) {
		r, err := newReach(listed(allow), listed(deny))
		if err != nil {
			require.ErrorContains(t, err, "http-")
			return
		}
		to, err := netip.ParseAddr(address)
		if err != nil {
			return
		}
		host, called := plainHost(host), r.check(plainHost(host), to) == nil
		ip := to.Unmap().WithZone("")
		within := slices.ContainsFunc(r.allow.nets, func(p netip.Prefix) bool { return p.Contains(ip) })
		if called {
			require.False(t, r.deny.has(ip), "it is denied")
			require.True(t, within || !ip.IsLinkLocalUnicast() && !ip.IsMulticast() && !ip.IsUnspecified(), "it is reserved")
			require.True(t, within || slices.Contains(r.allow.hosts, host) || r.allow.empty(), "it is not allowed")
		}
		denied, err := newReach(listed(allow), []string{ip.String()})
		require.NoError(t, err)
		require.Error(t, denied.check(host, to))
		opened, err := newReach([]string{ip.String()}, nil)
		require.NoError(t, err)
		if ip.Is4() {
			require.NoError(t, opened.check(host, to))
		}
	})
}

func listed(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" })
}
