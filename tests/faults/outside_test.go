package faults

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// outside is a service outside: it applies each Idempotency-Key once and counts
// how often it was asked, which may be more (C9).
type outside struct {
	*httptest.Server
	mu      sync.Mutex
	asked   map[string]int                           // by key
	applied map[string]string                        // key → what was asked for
	mood    func() (delay time.Duration, status int) // of one answer; nil is none and 200
}

func newOutside(t *testing.T) *outside {
	o := &outside{asked: map[string]int{}, applied: map[string]string{}}
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(o.Close)
	return o
}

func (o *outside) serve(w http.ResponseWriter, q *http.Request) {
	key := q.Header.Get("Idempotency-Key")
	o.mu.Lock()
	o.asked[key]++
	o.applied[key] = q.URL.Query().Get("what")
	o.mu.Unlock()
	if o.mood != nil {
		delay, status := o.mood()
		time.Sleep(delay) // the outside is slow
		w.WriteHeader(status)
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"receipt": key})
}

// books are the keys that were applied, with what they were applied for, and how
// often the service was asked.
func (o *outside) books() (applied map[string]string, asked int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	applied = make(map[string]string, len(o.applied))
	for key, what := range o.applied {
		applied[key] = what
		asked += o.asked[key]
	}
	return applied, asked
}
