package faults

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/tests/faults/play"
)

// process is a worker process that a cell started, stopped by its pid.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	log  *devtest.Log
	open chan struct{} // closed when its runtime is open
	gone chan struct{} // closed when it has ended
	err  error         // how, then
}

func startProcess(t testing.TB, program string, c play.Config) *process {
	t.Helper()
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.Command(program), log: &devtest.Log{}, open: make(chan struct{}), gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), play.Env+"="+string(raw))
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.cmd.Stderr = p.log
	require.NoError(t, p.cmd.Start())
	go func() {
		if line, _ := bufio.NewReader(out).ReadString('\n'); line == "open\n" {
			close(p.open)
		}
		p.err = p.cmd.Wait()
		close(p.gone)
	}()
	t.Cleanup(p.kill)
	return p
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// kill is SIGKILL: no deferred call, no flush (F1).
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // gone already is as good
	<-p.gone
}

// errHangs says of a process that it does not come to its end.
var errHangs = errors.New("it hangs")

// drain ends a process that lives: it must end well (T10). One that was started a
// moment ago is asked when it is open: before, a signal just ends it.
func (p *process) drain() error {
	select {
	case <-p.gone:
		return nil
	default:
	}
	select {
	case <-p.gone:
		return fmt.Errorf("it ended before it was open: %w", p.err)
	case <-time.After(patience):
		return fmt.Errorf("it does not open: %w", errHangs)
	case <-p.open:
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // gone already is as good
	select {
	case <-p.gone:
		return p.err
	case <-time.After(patience):
		return fmt.Errorf("it does not drain: %w", errHangs)
	}
}

// control is what a process stands still by: it asks, and goes on when it is
// answered.
type control struct {
	*httptest.Server
	arrived chan play.At // the process that stands at its point
	goOn    chan struct{}
	once    sync.Once

	mu   sync.Mutex
	acks []json.RawMessage // hints of messages that were about to be acked (I8)
}

func newControl(t *testing.T) *control {
	c := &control{arrived: make(chan play.At, 1), goOn: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/at", c.at)
	mux.HandleFunc("/ack", c.ack)
	c.Server = httptest.NewServer(mux)
	t.Cleanup(func() { c.release(); c.Close() })
	return c
}

func (c *control) at(w http.ResponseWriter, r *http.Request) {
	var at play.At
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
