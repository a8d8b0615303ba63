package quiputest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/workers"
)

// Names and sizes of a world: a space of one test is small.
const (
	space   = "test"
	lanes   = 4
	lease   = 6 * time.Second
	ackWait = 6 * time.Second

	maxStanding = 100 // functions at a time whose turns do not all run from the top
)

// World is a space in memory, with an engine and the worker processes of Serve. A method that
// cannot do its work fails the test at once, except the methods Try…, which return an error. Call
// methods from the goroutine of the scenario; handlers may call Try… and Receiver.
type World struct {
	t      testing.TB
	cfg    *config
	crash  *crash // nil: no process dies
	hub    hub    // told of everything that the scenario may wait for
	ends   hub    // told of the ends of jobs, and of the death of a process
	store  *engineStore
	bus    *membus.Bus
	eng    *engine.Engine
	bodies bodies
	log    *slog.Logger
	said   journalOfLogs
	ended  context.CancelFunc // ends the engine
	done   chan error         // receives the error of the engine's Run
	// resting is held while the scenario waits for every goroutine to rest.
	resting chan struct{}

	stragglers bool // handlers ignored the end of their process

	processes atomic.Int64 // begun so far
	signals   atomic.Int64 // sent so far, including interrupts

	mu        sync.Mutex // held only for moments: a goroutine that waits for it stops the time
	process   *process   // nil: none runs
	gone      []*process // dead or replaced
	served    int        // calls of Stop, and so of Serve
	receivers map[string]*Receiver
}

// open makes a world in the current bubble.
func open(t testing.TB, cfg *config, c *crash) *World {
	t.Helper()
	w := &World{
		t: t, cfg: cfg, crash: c, done: make(chan error, 1), resting: make(chan struct{}, 1),
		receivers: map[string]*Receiver{},
	}
	w.log = slog.New(slog.NewTextHandler(&w.said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, cancel := context.WithCancel(context.Background())
	w.ended = cancel
	w.store = newEngineStore(&w.hub, ctx.Done())
	b := membus.Config{Seed: cfg.seed, AckWait: ackWait}
	if cfg.lossy {
		b.Loss, b.Duplicate, b.Reorder = 0.1, 0.2, 0.3
	}
	w.bus = membus.New(b)
	eng, err := engine.New(ctx, engine.Config{
		Store: w.store, Bus: &bus{Bus: w.bus, w: w}, Space: space, Lanes: lanes, Committers: 1, Sweep: glance,
		Lease:  lease / 3,
		Writer: "quiputest", Logger: w.log, Ended: func([]engine.Ended) { w.ends.tell() },
	})
	if err != nil {
		t.Fatalf("quiputest: %v", err)
	}
	w.eng = eng
	go func() { w.done <- eng.Run(ctx) }()
	return w
}

// close ends everything and verifies the journals. It is called when the scenario has ended in
// any way.
func (w *World) close() {
	w.t.Helper()
	if !w.t.Failed() && !w.t.Skipped() {
		w.finish()
	}
	w.Stop()
	w.mu.Lock()
	gone := w.gone
	w.mu.Unlock()
	for _, p := range gone {
		if p.drain() != nil {
			w.stragglers = true
		}
	}
	w.ended()
	if err := <-w.done; err != nil {
		w.t.Errorf("quiputest: the engine ended: %v", err)
	}
	_ = w.bus.Close()
	if w.stragglers { // after this function has returned, time stands still
		time.Sleep(patience)
	}
	if !w.t.Failed() && !w.t.Skipped() && !w.cfg.unproved {
		w.Verify()
	}
	if w.t.Failed() {
		if text := w.said.String(); text != "" {
			w.t.Logf("the runtime warned:\n%s", text)
		}
	}
}

// Serve starts a worker process with the handlers that register adds. It first drains the one
// that runs, so a scenario can deploy new code under running jobs. register is called for each
// process, at any time: also a process that replaces a dead one gets its own registry.
func (w *World) Serve(register ...func(*workers.Registry)) {
	w.t.Helper()
	w.Stop()
	p, err := w.begin(register)
	if err != nil {
		w.t.Fatalf("quiputest: serve: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.process = p
}

// Stop drains the worker process: its running handlers finish, or their requests are handed back
// after work.DefaultDrain. Requests wait for the next Serve.
func (w *World) Stop() {
	w.t.Helper()
	w.mu.Lock()
	p := w.process
	w.process = nil
	w.served++
	w.mu.Unlock()
	if p == nil {
		return
	}
	if err := p.drain(); err != nil {
		w.t.Logf("quiputest: the worker process ended: %v", err)
		w.stragglers = true
	}
}

// replace starts a process in the place of a dead one, unless the scenario has called Serve or
// Stop since. A goroutine of the dead process calls it.
func (w *World) replace(dead *process) {
	w.mu.Lock()
	w.gone = append(w.gone, dead)
	serves, current := w.served, w.process == dead
	w.mu.Unlock()
	if !current {
		return
	}
	p, err := w.begin(dead.register)
	if err != nil { // unexpected: the same handlers began before
		w.t.Errorf("quiputest: serve again: %v", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.served == serves {
		w.process = p
		return
	}
	p.stop()
	w.gone = append(w.gone, p)
}

// Deploy stores flow versions. The first version of a flow is the active one.
func (w *World) Deploy(flows ...*flow.Flow) {
	w.t.Helper()
	for _, f := range flows {
		ref := collation.RefOf(f)
		_, err := w.store.Deploy(context.Background(),
			store.Deployment{Ref: ref, Canonical: f.Canonical(), Activate: true})
		if err != nil {
			w.t.Fatalf("deploy flow %s version %s: %v", ref.Name, ref.Version, err)
		}
	}
}

// DeployYAML is Deploy for flows as text, one flow in each source.
func (w *World) DeployYAML(sources ...string) {
	w.t.Helper()
	for i, source := range sources {
		w.deploy(fmt.Sprintf("flow %d", i+1), []byte(source))
	}
}

// DeployFiles is Deploy for the files that the patterns (filepath.Glob) match, at
// least one each.
func (w *World) DeployFiles(patterns ...string) {
	w.t.Helper()
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			w.t.Fatalf("deploy %s: no such file (%v)", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				w.t.Fatalf("deploy: %v", err)
			}
			w.deploy(name, text)
		}
	}
}

func (w *World) deploy(name string, source []byte) {
	w.t.Helper()
	f, err := flow.Parse(name, source)
	if err != nil {
		w.t.Fatalf("deploy: %v", err)
	}
	w.Deploy(f)
}

// Activate sets the version that new jobs of a flow take.
func (w *World) Activate(name, version string) {
	w.t.Helper()
	if err := w.store.Activate(context.Background(), name, version, ""); err != nil {
		w.t.Fatalf("activate flow %s version %s: %v", name, version, err)
	}
	w.eng.Publisher().Flows.Forget(name)
}

// journalOfLogs keeps the runtime's log.
type journalOfLogs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// maxLogs bounds the bytes that are kept.
const maxLogs = 64 << 10

// Write implements io.Writer.
func (l *journalOfLogs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Len() < maxLogs {
		_, _ = l.buf.Write(p)
	}
	return len(p), nil
}

// String returns the kept log.
func (l *journalOfLogs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
