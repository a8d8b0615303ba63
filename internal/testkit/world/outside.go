package world

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Outside is a service outside: it applies each Idempotency-Key once and counts how often
// it was asked, which may be more (C9).
type Outside struct {
	*httptest.Server
	// Mood is the delay and the status of one answer; nil is none and 200.
	Mood func() (delay time.Duration, status int)

	mu      sync.Mutex
	asked   map[string]int    // by key
	applied map[string]string // key → what was asked for
	holds   map[string]*Hold
}

// Hold keeps the answers to one kind of call back, after it was applied.
type Hold struct {
	Arrived chan struct{} // closed when the first call has been applied
	release chan struct{}
	once    sync.Once
}

// Free lets all held calls go, now and from now on.
func (h *Hold) Free() { h.once.Do(func() { close(h.release) }) }

// NewOutside is one until the test ends.
func NewOutside(t testing.TB) *Outside {
	o := &Outside{asked: map[string]int{}, applied: map[string]string{}, holds: map[string]*Hold{}}
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(o.Close)
	return o
}

// Hold has the service apply calls for what and then not answer until they are freed: the
// moment between doing and knowing.
func (o *Outside) Hold(t testing.TB, what string) *Hold {
	h := &Hold{Arrived: make(chan struct{}), release: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds[what] = h
	t.Cleanup(h.Free)
	return h
}

func (o *Outside) serve(w http.ResponseWriter, q *http.Request) {
	key, what := q.Header.Get("Idempotency-Key"), q.URL.Query().Get("what")
	o.mu.Lock()
	o.asked[key]++
	o.applied[key] = what
	h, first := o.holds[what], o.asked[key] == 1
	o.mu.Unlock()
	if h != nil {
		if first {
			close(h.Arrived)
		}
		select {
		case <-h.release:
		case <-q.Context().Done():
			return
		}
	}
	if o.Mood != nil {
		delay, status := o.Mood()
		time.Sleep(delay) // the outside is slow
		w.WriteHeader(status)
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"receipt": key})
}

// Books are the keys that were applied, with what they were applied for, and how often the
// service was asked for each.
func (o *Outside) Books() (applied map[string]string, asked map[string]int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.applied), maps.Clone(o.asked)
}

// AskedFor counts the calls for what, and the keys they came under.
func (o *Outside) AskedFor(what string) (calls, keys int) {
	applied, asked := o.Books()
	for key, w := range applied {
		if w == what {
			calls += asked[key]
			keys++
		}
	}
	return calls, keys
}

// Call asks an Outside to do what, once under the key.
func Call(ctx context.Context, at, key, what string) (map[string]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/?what="+url.QueryEscape(what), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the service outside answers %s", resp.Status)
	}
	out := map[string]string{}
	return out, json.NewDecoder(resp.Body).Decode(&out)
}
