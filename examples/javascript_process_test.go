package examples_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// event is a line of the worker.
type event struct {
	Event, Request, Key   string
	Turn, Attempt         int
	Publication, Delivery int
	Kind, Error           string
	Code                  int
}

// process is one worker.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan struct{} // its output has ended, and err is set
	err   error

	mu     sync.Mutex
	events []event
	more   chan struct{} // closed and made anew with each event
}

// worker is a copy of the worker with its packages, which all tests share.
var worker struct {
	mu  sync.Mutex
	dir string
}

// install returns that copy; the first test makes it.
func install(t *testing.T) (dir string) {
	t.Helper()
	worker.mu.Lock()
	defer worker.mu.Unlock()
	if worker.dir == "" {
		dir, err := os.MkdirTemp(bin, "javascript-")
		require.NoError(t, err)
		for _, name := range []string{"package.json", "package-lock.json", "worker.js", "wire.js", "labels.js"} {
			text, err := os.ReadFile(filepath.Join("javascript", name))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		}
		installPackages(t, dir)
		worker.dir = dir
	}
	return worker.dir
}

// launch runs a worker until the test ends, when it is killed if it still runs.
func launch(t *testing.T, dir string, s *Space, env ...string) *process {
	t.Helper()
	key, err := s.Runtime.Keys().Topic(t.Context(), "labels.print")
	require.NoError(t, err)
	p := &process{t: t, ended: make(chan struct{}), more: make(chan struct{})}
	p.cmd = exec.Command("node", "worker.js")
	p.cmd.WaitDelay = drain
	p.cmd.Dir, p.cmd.Env = dir, append(append(os.Environ(), "QUIPU_NATS="+s.NATS, "QUIPU_TOPIC_KEY="+key), env...)
	var stderr strings.Builder
	p.cmd.Stderr = &stderr
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.heard(s.Text())
		}
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		devtest.Await(t, "the end of the killed worker", p.ended)
		if t.Failed() {
			t.Logf("the worker said: %+v\n%s", p.all(), &stderr)
		}
	})
	return p
}

func (p *process) heard(line string) {
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		e = event{Event: "noise", Error: line}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
	close(p.more)
	p.more = make(chan struct{})
}

func (p *process) all() []event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]event(nil), p.events...)
}

// of returns the worker's events of a kind about a job.
func (p *process) of(kind, key string) (out []event) {
	for _, e := range p.all() {
		if e.Event == kind && e.Key == key {
			out = append(out, e)
		}
	}
	return out
}

// until waits for an event about a job.
func (p *process) until(kind, key string) event {
	p.t.Helper()
	late := time.After(patience)
	for {
		p.mu.Lock()
		more := p.more
		p.mu.Unlock()
		if found := p.of(kind, key); len(found) > 0 {
			return found[0]
		}
		select {
		case <-more:
		case <-p.ended:
			require.FailNow(p.t, "the worker has ended", "%v", p.err)
		case <-late:
			require.FailNow(p.t, "no event", "%s of %s", kind, key)
		}
	}
}

// kill kills the worker at once.
func (p *process) kill() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Kill())
	devtest.Await(p.t, "the end of the killed worker", p.ended)
}

// end asks the worker to end, and waits until it has ended without an error.
func (p *process) end() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.ended:
		require.NoError(p.t, p.err)
	case <-time.After(patience):
		require.FailNow(p.t, "the worker does not end")
	}
}

// smooth says that nothing went wrong, and that no request came while it was already running,
// unless that is allowed.
func (p *process) smooth(allowed ...string) {
	p.t.Helper()
	for _, e := range p.all() {
		require.Contains(p.t, append(allowed, "ready", "run", "answered", "draining"), e.Event, "%+v", e)
	}
}
