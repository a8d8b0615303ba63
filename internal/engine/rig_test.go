package engine_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/local"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/session"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// rig is engine and workers over memory, in a synctest bubble: time passes only when everybody
// waits.
type rig struct {
	t      *testing.T
	store  *memstore.Store
	bus    *membus.Bus
	eng    *engine.Engine
	stop   context.CancelFunc
	leave  context.CancelFunc // ends the session
	done   chan error
	closed bool
	hints  int    // put on the bus by hand
	trace  string // of the jobs to start
}

// fault makes calls of the store fail. op is "commit", or "commit.done" after the commit was
// done.
type fault func(op string) error

func start(t *testing.T, cfg engine.Config, busCfg membus.Config, f fault, reg *workers.Registry) *rig {
	t.Helper()
	r := &rig{t: t, done: make(chan error, 3)}
	r.store = memstore.New(memstore.Config{
		Space: "test", Now: func() int64 { return time.Now().UnixMicro() }, Fault: f,
	})
	busCfg.AckWait = 2 * time.Second
	r.bus = membus.New(busCfg)
	own := session.New(session.Config{Store: r.store})
	cfg.Store, cfg.Bus, cfg.Space, cfg.Session = r.store, r.bus, "test", own
	if asked, ok := cfg.Local.(handsOver); ok {
		here := local.New(r.bus, "here")
		here.Traffic = cfg.Traffic
		cfg.Bus, cfg.Local = here, here
		if asked.early {
			cfg.Early = early.NewTopics()
		}
		if asked.renames {
			cfg.Local = renamer{here}
		}
		if asked.lies {
			cfg.Local = liar{here}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	r.eng, err = engine.New(ctx, cfg)
	require.NoError(t, err)
	w, err := work.NewRuntime(work.Config{
		Registry: reg, Bus: r.eng.Config().Bus, Store: r.eng.Committer().Worker(), Space: "test", Lanes: r.eng.Config().Lanes,
		DeadLetter: r.eng.Committer().DeadLetter, Session: own, AckWait: 2 * time.Second, ResponseWait: time.Second,
		Early: cfg.Early, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	keeping, leave := context.WithCancel(context.Background())
	opened := make(chan struct{})
	go func() { r.done <- own.Run(keeping, opened) }()
	<-opened
	go func() { r.done <- r.eng.Run(ctx) }()
	go func() { r.done <- w.Run(ctx) }()
	r.stop, r.leave = cancel, leave
	t.Cleanup(r.close)
	return r
}

// close drains the engine and the workers. The test's end does it, if the test did not.
func (r *rig) close() {
	if r.closed {
		return
	}
	r.closed = true
	r.stop()
	require.NoError(r.t, <-r.done)
	require.NoError(r.t, <-r.done)
	r.leave()
	require.NoError(r.t, <-r.done)
	require.NoError(r.t, r.bus.Close())
}

// ended waits until all jobs have ended.
func (r *rig) ended(ids []journal.JobID) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Hour); ; time.Sleep(100 * time.Millisecond) { // the bubble's clock
		ended, err := r.store.Ended(context.Background(), ids)
		require.NoError(r.t, err)
		n := 0
		for _, e := range ended {
			if e {
				n++
			}
		}
		if n == len(ids) {
			return
		}
		require.True(r.t, time.Now().Before(deadline), "%d of %d jobs ended in an hour", n, len(ids))
	}
}

var modes = map[string]engine.Config{
	"fold": {}, "nofold": {NoFold: true}, "stepwise": {Stepwise: true}, "one": {MaxBatch: 1, Committers: 1}, "cold": {HotBytes: -1},
	"local": withLocal(engine.Config{}), "local and cold": withLocal(engine.Config{HotBytes: -1}),
	"early": withEarly(engine.Config{}), "early and cold": withEarly(engine.Config{HotBytes: -1}),
}

// each runs a scenario in every mode (C11), in a bubble of its own.
func each(t *testing.T, scenario func(t *testing.T, cfg engine.Config)) {
	t.Parallel()
	for name, cfg := range modes {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) { scenario(t, cfg) })
		})
	}
}

// inBubble runs a test beside others, on a clock that moves when all goroutines wait.
func inBubble(t *testing.T, run func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, run)
}

// completed waits for the jobs' ends, and requires that they completed with the output.
func (r *rig) completed(ids []journal.JobID, output string) {
	r.t.Helper()
	r.ended(ids)
	for _, id := range ids {
		v, err := r.store.Job(context.Background(), id)
		require.NoError(r.t, err)
		require.Equal(r.t, journal.JobCompleted, v.State, "%v", v.Error)
		require.JSONEq(r.t, output, string(v.Output))
		require.Empty(r.t, v.Rows, "I6")
		require.Zero(r.t, v.Semaphore, "I4")
	}
}

// deploy stores a YAML flow as the active version.
func (r *rig) deploy(source string) *flow.Flow {
	r.t.Helper()
	f, err := flow.Parse("flow.yaml", []byte(source))
	require.NoError(r.t, err)
	ref := collation.RefOf(f)
	_, err = r.store.Deploy(context.Background(), store.Deployment{Ref: ref, Canonical: f.Canonical()})
	require.NoError(r.t, err)
	return f
}

// run starts a job of a deployed flow, as a client without a bus does.
func (r *rig) run(name, key, input string) journal.JobID {
	r.t.Helper()
	for { // until it is acknowledged
		out, err := journaltest.Driven{Store: r.store}.Start(context.Background(),
			[]store.Start{r.asks(name, key, input)}, r.mode())
		if err == nil {
			return out[0].Job
		}
	}
}

// publish starts a job as a client with a bus does.
func (r *rig) publish(name, key, input string) journal.JobID {
	r.t.Helper()
	out := r.eng.Committer().Start(context.Background(), []store.Start{r.asks(name, key, input)})
	require.NoError(r.t, out[0].Err)
	return out[0].Job
}

func (r *rig) mode() collation.Mode {
	cfg := r.eng.Config()
	return cfg.Mode()
}

func (r *rig) asks(name, key, input string) store.Start {
	r.t.Helper()
	ctx := context.Background()
	ref, f, err := r.eng.Publisher().Flows.Resolve(ctx, name, "")
	require.NoError(r.t, err)
	body, err := canonical.Payload([]byte(input))
	require.NoError(r.t, err)
	return store.Start{Flow: ref, Trigger: f.Trigger().Name, Key: key, Input: body, Trace: r.trace}
}

// interrupt sends an interrupt, as a client without a bus does.
func (r *rig) interrupt(target journal.JobID, o collation.InterruptOrder, name string) {
	r.t.Helper()
	row, err := o.Row(collation.AskedInterruptGUID(name, target), target, 0)
	require.NoError(r.t, err)
	for { // until it is acknowledged
		_, err = journaltest.Driven{Store: r.store}.Interrupt(context.Background(), row, collation.Mode{})
		if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) {
			break
		}
	}
	require.NoError(r.t, err)
}

func (r *rig) view(id journal.JobID) *store.JobView {
	r.t.Helper()
	v, err := r.store.Job(context.Background(), id)
	require.NoError(r.t, err)
	return v
}

// find is the job that has the key.
func (r *rig) find(key string) journal.JobID {
	r.t.Helper()
	id, err := r.store.FindJob(context.Background(), key)
	require.NoError(r.t, err)
	return id
}

// entries are the job's entries, main chain first.
func (r *rig) entries(id journal.JobID) []*journal.Entry {
	r.t.Helper()
	var out []*journal.Entry
	err := r.store.Audit(context.Background(), id,
		func(_ *store.Stored, records iter.Seq2[journal.Record, error]) error {
			for rec, err := range records {
				require.NoError(r.t, err)
				e, err := journal.Decode(rec)
				require.NoError(r.t, err)
				out = append(out, e)
			}
			return nil
		})
	require.NoError(r.t, err)
	return out
}

// withLocal lets the engine hand requests over to the workers of its process (W7).
func withLocal(cfg engine.Config) engine.Config {
	cfg.Local = handsOver{}
	return cfg
}

// handsOver makes start use a local bus; with lies it uses one that takes what nobody serves.
type handsOver struct {
	engine.Local
	lies, early, renames bool
}

// renamer gives early runs other holders than their requests have.
type renamer struct{ *local.Bus }

func (r renamer) Begin(m *transport.Message, cause *early.Cause) (func(), error) {
	m.Holder += "'"
	return r.Bus.Begin(m, cause)
}

// withEarly lets early handlers begin before their causes have committed, too (L4).
func withEarly(cfg engine.Config) engine.Config {
	cfg.Local = handsOver{early: true}
	return cfg
}

type liar struct{ *local.Bus }

func (liar) Take(string) (string, bool) { return "nobody", true }

// output waits for the job's end, and requires that it completed with the output.
func (r *rig) output(id journal.JobID, output string) {
	r.t.Helper()
	r.ended([]journal.JobID{id})
	v := r.view(id)
	require.Equal(r.t, journal.JobCompleted, v.State, "%v", v.Error)
	require.JSONEq(r.t, output, string(v.Output))
}

// failed waits for the job's end, and requires that it ended in that way.
func (r *rig) failed(id journal.JobID, state journal.JobState, code int, message string) {
	r.t.Helper()
	r.ended([]journal.JobID{id})
	v := r.view(id)
	require.Equal(r.t, state, v.State)
	require.Equal(r.t, code, v.Code, "%v", v.Error)
	require.Contains(r.t, v.Error.Message, message)
}

// proved requires that the journals of jobs prove what the tables hold (2.5).
func (r *rig) proved(ids ...journal.JobID) {
	r.t.Helper()
	for _, id := range ids {
		report, err := store.VerifyJob(context.Background(), r.store, id, nil, nil)
		require.NoError(r.t, err)
		require.False(r.t, report.Violated(), "job %s: %+v", report.Header.Key, report.First)
	}
}
