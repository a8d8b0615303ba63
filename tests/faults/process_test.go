package faults

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/world"
)

// startProcess starts a worker process: this program, or that of another build.
func startProcess(t testing.TB, program string, c workerConfig) *world.Process {
	t.Helper()
	return world.StartProcess(t, &devtest.Log{}, program, world.Variable(workerEnv, c))
}

// control is what a process stands still by: it asks, and goes on when it is
// answered.
type control struct {
	*httptest.Server
	arrived chan arrival // the process that stands at its point
	goOn    chan struct{}
	once    sync.Once

	mu   sync.Mutex
	acks []json.RawMessage // hints of messages that were about to be acked (I8)
}

func newControl(t *testing.T) *control {
	c := &control{arrived: make(chan arrival, 1), goOn: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/at", c.at)
	mux.HandleFunc("/ack", c.ack)
	c.Server = httptest.NewServer(mux)
	t.Cleanup(func() { c.release(); c.Close() })
	return c
}

func (c *control) at(w http.ResponseWriter, r *http.Request) {
	var at arrival
	if err := json.NewDecoder(r.Body).Decode(&at); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.arrived <- at
	select {
	case <-c.goOn:
	case <-r.Context().Done():
	}
}

// release lets the process go on.
func (c *control) release() { c.once.Do(func() { close(c.goOn) }) }

func (c *control) ack(w http.ResponseWriter, r *http.Request) {
	var hint json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&hint); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acks = append(c.acks, hint)
}

// acked takes the hints of what was acked since it was called last.
func (c *control) acked() []json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	acks := c.acks
	c.acks = nil
	return acks
}
