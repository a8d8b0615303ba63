package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// receiver is a service outside: it applies each Idempotency-Key once and
// counts how often it was asked, which may be more (C9).
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	asked   map[string]int
	applied map[string]string // key → what was asked for
	holds   map[string]*hold
}

// hold keeps the answers to one kind of call back, after it was applied.
type hold struct {
	arrived chan struct{} // closed when the first call has been applied
	release chan struct{}
	once    sync.Once
}

// hold makes the receiver apply calls for what and then not answer until
// release is closed: the moment between doing and knowing.
func (r *receiver) hold(t *testing.T, what string) *hold {
	h := &hold{arrived: make(chan struct{}), release: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds[what] = h
	t.Cleanup(h.free)
	return h
}

// free lets all held calls go, now and from now on.
func (h *hold) free() { h.once.Do(func() { close(h.release) }) }

func newReceiver(t *testing.T) *receiver {
	r := &receiver{asked: map[string]int{}, applied: map[string]string{}, holds: map[string]*hold{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	key, what := q.Header.Get("Idempotency-Key"), q.URL.Query().Get("what")
	r.mu.Lock()
	r.asked[key]++
	if _, again := r.applied[key]; !again {
		r.applied[key] = what
	}
	h := r.holds[what]
	first := r.asked[key] == 1
	r.mu.Unlock()
	if h != nil {
		if first {
			close(h.arrived)
		}
		select {
		case <-h.release:
		case <-q.Context().Done():
			return
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"receipt": key})
}

// appliedOnce checks that what was applied outside is exactly what was wanted,
// each under one key: I1. It returns how often the receiver was asked.
func (r *receiver) appliedOnce(t *testing.T, want map[string]bool) int {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	got, asked := map[string]int{}, 0
	for key, what := range r.applied {
		got[what]++
		asked += r.asked[key]
	}
	for what := range want {
		require.Equal(t, 1, got[what], "%s was applied under %d keys", what, got[what])
	}
	require.Len(t, got, len(want), "nothing else was applied")
	require.GreaterOrEqual(t, asked, len(want))
	return asked
}

// askedFor counts the calls for what, and the keys they came under.
func (r *receiver) askedFor(what string) (calls, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, w := range r.applied {
		if w == what {
			calls += r.asked[key]
			keys++
		}
	}
	return calls, keys
}
