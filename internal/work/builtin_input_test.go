package work

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// E8: what is wrong with an input of http is an error 400 before anything is sent, and not tried
// again.
func TestBuiltinHTTPInputsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	h := builtinHouse(t, workers.Builtins{Secrets: func(string) (workers.Secret, error) {
		return workers.Secret{Value: "sk_live_123", Hosts: []string{"127.0.0.1"}}, nil
	}})
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	secret := `"Authorization":"Bearer ${secret:PAY}"`
	for i, c := range []struct{ members, says string }{
		{`"headers":{"X A":"v"}`, `a header cannot be called "X A"`},
		{`"headers":{"":"v"}`, `a header cannot be called ""`},
		{`"headers":{"X-A":"a\nb"}`, "the value of header X-A has a control character"},
		{`"headers":{"X-A":"\u0001"}`, "control character"},
		{`"headers":{"X-D":"\n","X-B":"\n","X-A":"\n","X-C":"\n","X-E":"\n"}`, "header X-A has a control character"},
		{`"headers":{"x-a":"1","X-A":"2"}`, "header X-A is given twice"},
		{`"method":"GET IT"`, "method is no word"},
		{`"bodyy":1`, `no member is called "bodyy"`},
		{`"verfy":{"url":"http://h/"}`, `no member is called "verfy"`},
		{`"Body":1`, `no member is called "Body"`},
		{`"verify":{"url":"http://h/","setle":"1s"}`, `verify: no member is called "setle"`},
		{`"verify":{"url":"http://h/","headers":{"a b":""}}`, `verify: a header cannot be called "a b"`},
		{`"headers":{"Host":"evil.example",` + secret + `}`, "header Host in a call with a secret"},
		{`"headers":{"hOST":"evil.example",` + secret + `}`, "header Host in a call with a secret"},
		{`"headers":{"X-Forwarded-Host":"evil.example",` + secret + `}`, "header X-Forwarded-Host in a call with a secret"},
		{`"headers":{"Forwarded":"host=evil.example",` + secret + `}`, "header Forwarded in a call with a secret"},
		{`"headers":{"Proxy-Connection":"x",` + secret + `}`, "header Proxy-Connection in a call with a secret"},
		{`"headers":{"Connection":"Authorization",` + secret + `}`, "header Connection in a call with a secret"},
	} {
		method := `"method":"POST",`
		if strings.Contains(c.members, `"method"`) {
			method = ""
		}
		r := h.one(ask("http", byte(i), fmt.Sprintf(`{%s"url":%q,%s}`, method, server.URL, c.members)))
		require.Equal(t, []any{journal.ResponseTerminal, 400, wire.ClassInput}, []any{r.Kind, r.Code, r.Error.Class},
			c.members)
		require.Contains(t, r.Error.Message, c.says)
	}
	require.Zero(t, asked.Load())
	r := h.one(ask("http", 200, fmt.Sprintf(`{"method":"POST","url":%q,"headers":{"Host":"a.example"}}`, server.URL)))
	require.Equal(t, 200, r.Code, "without a secret")
}

// S14: the hosts of a secret may say scheme and port.
func TestS14SecretsBelongToSchemesAndPorts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		entry, url string
		is         bool
	}{
		{"api.example", "https://api.example/x", true},
		{"api.example", "http://API.example.:8080/x", true},
		{"api.example:8443", "https://api.example:8443/", true},
		{"api.example:8443", "https://api.example/", false},
		{"api.example:443", "https://api.example/", true},
		{"https://api.example", "https://api.example/", true},
		{"https://api.example", "https://api.example:443/", true},
		{"https://api.example", "http://api.example/", false},
		{"https://api.example", "http://api.example:443/", false},
		{"https://api.example", "https://api.example:8443/", false},
		{"HTTPS://api.example:8443", "https://api.example:8443/", true},
		{"https://api.example.evil.example", "https://api.example/", false},
		{"::1", "http://[::1]:80/", true},
		{"[::1]:80", "http://[::1]/", true},
		{"http://[::1]", "http://[::1]:80/", true},
		{"http://[::1]:81", "http://[::1]/", false},
		{"", "http://x/", false},
		{"https://api.example/path", "https://api.example/path", false},
	} {
		q, err := http.NewRequest(http.MethodGet, c.url, nil)
		require.NoError(t, err)
		require.Equal(t, c.is, belongs([]string{c.entry}, q.URL), "%s %s", c.entry, c.url)
	}
}

// S14: a secret that belongs to one scheme and port does not go on by a redirect to another.
func TestS14SecretsAreNotRedirectedToAnotherPort(t *testing.T) {
	t.Parallel()
	s := &sent{places: [][]string{{"http://127.0.0.1:81"}}, headers: []string{"Authorization"}}
	at := func(url string) *http.Request {
		q, err := http.NewRequest(http.MethodGet, url, nil)
		require.NoError(t, err)
		q.Header.Set("Authorization", "sk")
		return q
	}
	same, other := at("http://127.0.0.1:81/b"), at("https://127.0.0.1:81/b")
	require.NoError(t, s.redirect(same, []*http.Request{at("http://127.0.0.1:81/a")}))
	require.NotEmpty(t, same.Header.Get("Authorization"))
	require.NoError(t, s.redirect(other, []*http.Request{at("http://127.0.0.1:81/a")}))
	require.Empty(t, other.Header.Get("Authorization"))
}

// S14: http does not reach a server of its own process, by no form of its address.
func TestS14TheServersOfTheProcessAreNotCalled(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	own := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(own.Close)
	port := own.Listener.Addr().(*net.TCPAddr).Port
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, fmt.Sprintf("http://127.0.0.1:%d/", port), http.StatusFound)
	}))
	t.Cleanup(away.Close)
	h := builtinHouse(t, workers.Builtins{
		HTTPAllow: []string{"0.0.0.0/8", "::/128", "127.0.0.0/8", "::1", "::ffff:0:0/96", "localhost"},
		HTTPOwn:   func() []string { return []string{"unix", own.Listener.Addr().String()} },
	})
	for i, host := range []string{"127.0.0.1", "127.0.0.2", "localhost", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "127.1", "2130706433", "0x7f000001", "LOCALHOST."} {
		r := h.one(ask("http", byte(i), fmt.Sprintf(`{"url":"http://%s:%d/"}`, host, port)))
		require.NotEqual(t, 200, r.Code, host)
		if r.Code == http.StatusForbidden {
			require.Equal(t, wire.ClassRefused, r.Error.Class, host)
		}
	}
	r := h.one(ask("http", 100, fmt.Sprintf(`{"url":%q}`, away.URL)))
	require.Equal(t, http.StatusForbidden, r.Code, "by a redirect")
	require.Contains(t, r.Error.Message, "a server of this process listens there")
	require.Zero(t, asked.Load())
	for server, ips := range map[string][]string{
		"127.0.0.1:80": {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "0.0.0.0"},
		"[::]:80":      {"127.0.0.1", "::1", "0.0.0.0", "::ffff:0.0.0.0"},
		"10.1.2.3:80":  {"10.1.2.3", "::ffff:10.1.2.3"},
	} {
		for _, ip := range ips {
			require.True(t, reach{own: func() []string { return []string{server} }}.isOwn(at(ip, 80)), "%s %s", server, ip)
			require.False(t, reach{own: func() []string { return []string{server} }}.isOwn(at(ip, 81)), "%s %s", server, ip)
		}
	}
	require.False(t, reach{own: func() []string { return []string{"127.0.0.1:80"} }}.isOwn(at("10.1.2.3", 80)))
	require.False(t, reach{own: func() []string { return []string{"10.1.2.3:80"} }}.isOwn(at("127.0.0.1", 80)))
}

func at(ip string, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(ip), port)
}

// unasked keeps what the standard log of the process is told.
var unasked struct {
	sync.Mutex
	bytes.Buffer
	once sync.Once
}

type intoUnasked struct{}

func (intoUnasked) Write(b []byte) (int, error) {
	unasked.Lock()
	defer unasked.Unlock()
	return unasked.Write(b)
}

// S14: what a receiver sends unasked, before a request, behind a response and on a connection that
// is idle, is in no log, the secret that it was sent before included.
func TestS14UnaskedAnswersAreNotLogged(t *testing.T) {
	t.Parallel()
	unasked.once.Do(func() { log.SetOutput(io.MultiWriter(log.Writer(), intoUnasked{})) })
	const secret, junk = "sk_live_9876", "HTTP/1.1 200 OK\r\nX-Junk: %s\r\nContent-Length: 0\r\n\r\n"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	var first atomic.Bool
	first.Store(true)
	var conns sync.WaitGroup
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				if !first.Swap(false) { // it knows the secret from the call before
					_, _ = fmt.Fprintf(c, junk, secret)
				}
				for in := bufio.NewReader(c); ; {
					q, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, q.Body)
					_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"+junk, secret)
					_, _ = fmt.Fprintf(c, junk, secret)
				}
			})
		}
	}()
	h := builtinHouse(t, workers.Builtins{Secrets: func(string) (workers.Secret, error) {
		return workers.Secret{Value: secret, Hosts: []string{"127.0.0.1"}}, nil
	}})
	for i := range 4 {
		h.one(ask("http", byte(i), fmt.Sprintf(`{"url":"http://%s/","headers":{"Authorization":"${secret:PAY}"}}`, l.Addr())))
	}
	conns.Wait() // each connection has ended: the transport has read what it reads
	unasked.Lock()
	defer unasked.Unlock()
	require.NotContains(t, unasked.String(), secret)
	require.NotContains(t, unasked.String(), "Unsolicited")
}
