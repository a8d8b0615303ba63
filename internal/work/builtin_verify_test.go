package work

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// till takes charges by POST /charges and shows them at GET /charges/KEY.
type till struct {
	*httptest.Server
	mu     sync.Mutex
	posted []string                                          // keys
	looked []http.Header                                     // of GETs
	post   func(key string, w http.ResponseWriter) (ok bool) // whether the charge is applied; nil: always
	look   func(n int, applied bool) int                     // the status of the n-th GET; nil: 200 or 404
	done   map[string]bool
}

func newTill(t *testing.T) *till {
	s := &till{done: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *till) serve(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if q.Method == http.MethodPost {
		key := q.Header.Get("Idempotency-Key")
		s.posted = append(s.posted, key)
		if s.post == nil || s.post(key, w) {
			s.done[key] = true
		}
		_, _ = fmt.Fprintf(w, `{"charged":%q}`, key)
		return
	}
	key := strings.TrimPrefix(q.URL.Path, "/charges/")
	s.looked = append(s.looked, q.Header.Clone())
	status := http.StatusNotFound
	if s.done[key] {
		status = http.StatusOK
	}
	if s.look != nil {
		status = s.look(len(s.looked), s.done[key])
	}
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"found":%q}`, key)
}

// cut closes the connection without an answer.
func cut(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = c.Close()
	}
}

func (s *till) input(mode string) string {
	return fmt.Sprintf(`{"method":"POST","url":"%[1]s/charges","verify":{"url":"%[1]s/charges/${key}","headers":{"X-Charge":"k-${key}"},"mode":%[2]q,"settle":"1ms"}}`,
		s.URL, mode)
}

func output(t *testing.T, raw json.RawMessage) (out HTTPResponse) {
	t.Helper()
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

// 3.3: the receiver's statements about a call that was cut off.
func TestBuiltinHTTPVerifyUnfinished(t *testing.T) {
	t.Parallel()
	const terminal, failed, parked = journal.ResponseTerminal, journal.ResponseFailedAttempt, journal.ResponseParked
	applied := func(_ string, w http.ResponseWriter) bool { cut(w); return true }
	lost := func(_ string, w http.ResponseWriter) bool { cut(w); return false }
	for name, c := range map[string]struct {
		post  func(string, http.ResponseWriter) bool
		look  func(int, bool) int
		kind  journal.ResponseKind
		code  int
		state store.EffectState
		looks int
	}{
		"done":              {applied, nil, terminal, 200, store.EffectCompleted, 1},
		"not done":          {lost, nil, failed, 500, store.EffectNotDone, 2},
		"done a bit later":  {lost, func(n int, _ bool) int { return []int{404, 200}[n-1] }, terminal, 200, store.EffectCompleted, 2},
		"gone":              {lost, func(int, bool) int { return 410 }, failed, 500, store.EffectNotDone, 2},
		"verifier fails":    {lost, func(int, bool) int { return 500 }, parked, 500, store.EffectStarted, 1},
		"verifier redirect": {lost, func(int, bool) int { return 304 }, parked, 500, store.EffectStarted, 1},
		"fails after 404":   {lost, func(n int, _ bool) int { return []int{404, 403}[n-1] }, parked, 500, store.EffectStarted, 2},
		"try later": {func(_ string, w http.ResponseWriter) bool {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(503)
			return false
		}, nil, failed, 503, store.EffectNotDone, 2},
		"refused": {func(_ string, w http.ResponseWriter) bool {
			w.WriteHeader(402)
			return false
		}, nil, terminal, 402, store.EffectCompleted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, h := newTill(t), builtinHouse(t)
			s.post, s.look = c.post, c.look
			q := ask("http", 1, s.input("human"))
			r := h.one(q)
			require.Equal(t, []any{c.kind, c.code}, []any{r.Kind, r.Code})
			rows := h.store.Rows(guid(t, q))
			require.Equal(t, c.state, rows[0].State)
			require.Equal(t, "guarded", rows[0].Class)
			require.Len(t, s.posted, 1)
			require.Len(t, s.looked, c.looks)
			key := rows[0].Key.String()
			for _, header := range s.looked {
				require.Equal(t, []string{key, "k-" + key}, []string{header.Get("Idempotency-Key"), header.Get("X-Charge")})
			}
			switch {
			case name == "try later":
				require.EqualValues(t, 7000, r.RetryAfterMS)
			case r.Code == 200:
				out := output(t, r.Output)
				require.Equal(t, 200, out.Status)
				require.JSONEq(t, `{"found":"`+key+`"}`, string(out.Body))
			}
		})
	}
}

// net/http never repeats a guarded call. It would, if a kept connection is closed and the
// request has an Idempotency-Key.
func TestBuiltinHTTPVerifyIsNotSentAgain(t *testing.T) {
	t.Parallel()
	s, h := newTill(t), builtinHouse(t)
	require.Equal(t, 200, h.one(ask("http", 1, s.input("human"))).Code)
	s.post = func(_ string, w http.ResponseWriter) bool { cut(w); return true }
	require.Equal(t, 200, h.one(ask("http", 2, s.input("human"))).Code)
	require.Len(t, s.posted, 2)
	require.NotEqual(t, s.posted[0], s.posted[1])
	require.NotEmpty(t, s.posted[1])
}

// 3.3: any 2xx confirms a completed call, whatever its body; a 404 contradicts it. After a
// recorded refusal there is nothing to confirm.
func TestBuiltinHTTPVerifyCompleted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode    string
		refuses bool
		look    func(int, bool) int
		kind    journal.ResponseKind
		class   string
	}{
		"strict, found": {"strict", false, nil, journal.ResponseTerminal, ""},
		"strict, lost":  {"strict", false, func(int, bool) int { return 404 }, journal.ResponseTerminal, wire.ClassVerification},
		"strict, away":  {"strict", false, func(int, bool) int { return 500 }, journal.ResponseTerminal, ""},
		"human, lost":   {"human", false, func(int, bool) int { return 410 }, journal.ResponseParked, wire.ClassConfirm},
		"warn, lost":    {"warn", false, func(int, bool) int { return 404 }, journal.ResponseTerminal, ""},
		"a refusal":     {"strict", true, nil, journal.ResponseTerminal, ""},
		"as it is":      {"", false, func(int, bool) int { return 404 }, journal.ResponseTerminal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, h := newTill(t), builtinHouse(t)
			s.look = c.look
			looks := 1
			if c.refuses {
				s.post, looks = func(_ string, w http.ResponseWriter) bool { w.WriteHeader(402); return false }, 0
			}
			q := ask("http", 1, s.input(c.mode))
			first := h.one(q)
			if !c.refuses {
				require.JSONEq(t, `{"charged":"`+s.posted[0]+`"}`, string(output(t, first.Output).Body))
			}
			h.store.Expire(guid(t, q)) // its process died before the response arrived
			h.send(q, 2)
			_, hint := h.answer()
			require.Equal(t, c.kind, hint.Response.Kind)
			if c.class != "" {
				require.Equal(t, c.class, hint.Response.Error.Class)
			} else {
				require.Equal(t, first, hint.Response)
			}
			require.Len(t, s.posted, 1)
			require.Len(t, s.looked, looks)
		})
	}
}
