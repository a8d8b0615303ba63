package e2e

import (
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport/nats"
	"github.com/quipu-journal/quipu/workers"
)

// patience bounds every wait of a test: a job that has not ended by then is
// stranded (I11).
const patience = 90 * time.Second

// keepLog is how much of what a process says is kept for a failure.
const keepLog = 8 << 10

// env is a space of its own on real servers.
type env struct {
	*world.World
	t        *testing.T
	stepwise bool
	noLocal  bool
	noEarly  bool
	hot      int // HotBytes
	log      *devtest.Log
	logins   *logins // under least roles, else nil
}

func newEnv(t *testing.T, stepwise bool) *env {
	t.Helper()
	w := &world.World{T: t, Postgres: world.Database(t, "shop"), Space: "shop"}
	e := &env{World: w, t: t, stepwise: stepwise, log: &devtest.Log{Keep: keepLog}}
	if leastRoles {
		e.least()
	} else {
		e.NATS = devtest.NATS(t)
	}
	return e
}

// inAMode runs a scenario in the normal mode or stepwise, as the dice say, and in
// both in a soak; with and without hand-over in memory and hot states, as the dice say. That the
// modes give the same is held by the model, the simulator and the fault cells, which have each of
// them (C11).
func inAMode(t *testing.T, scenario func(t *testing.T, e *env)) {
	t.Parallel()
	modes := []bool{false, true}
	if !soak.On() {
		modes = []bool{rand.N(2) == 0}
	}
	for _, stepwise := range modes {
		t.Run(map[bool]string{false: "normal", true: "stepwise"}[stepwise], func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, stepwise)
			e.noLocal, e.noEarly, e.hot = rand.N(2) == 0, rand.N(2) == 0, -rand.N(2)
			t.Logf("without hand-over in memory: %v, without early runs: %v, without hot states: %v", e.noLocal, e.noEarly, e.hot < 0)
			scenario(t, e)
		})
	}
}

func (e *env) config(reg *workers.Registry) quipu.Config {
	cfg := e.Short()
	cfg.NATSWait, cfg.Workers, cfg.Drain, cfg.HotBytes = -1, reg, 5*time.Second, e.hot
	cfg.Logger = slog.New(slog.NewTextHandler(e.log, nil))
	if e.logins != nil {
		cfg.Postgres, cfg.NATS, cfg.NoMigrate = e.logins.engine, e.user(nats.Engine), true
	}
	return cfg
}

// client opens a runtime that starts, signals, waits, decides and looks; the work is done elsewhere.
func (e *env) client(change ...func(*quipu.Config)) *quipu.Runtime {
	e.t.Helper()
	cfg := e.config(nil)
	if e.logins != nil {
		cfg.Postgres, cfg.NATS, cfg.Roles = e.logins.operator, e.user(nats.Client), []quipu.Role{quipu.RoleSchedule}
	}
	for _, f := range change {
		f(&cfg)
	}
	return e.open(cfg)
}

// open connects a runtime that the test's end closes.
func (e *env) open(cfg quipu.Config) *quipu.Runtime {
	e.t.Helper()
	rt, err := testkit.Open(e.t.Context(), cfg, below.Mode{
		Stepwise: e.stepwise, NoLocal: e.noLocal, NoEarly: e.noEarly,
	})
	require.NoError(e.t, err)
	e.t.Cleanup(rt.Close)
	e.t.Cleanup(func() {
		if e.t.Failed() {
			e.t.Logf("the runtime said:\n%s", e.log)
		}
	})
	return rt
}

// run opens a runtime and works until the returned stop, or the test's end.
func (e *env) run(reg *workers.Registry, change ...func(*quipu.Config)) (rt *quipu.Runtime, stop func()) {
	e.t.Helper()
	cfg := e.config(reg)
	for _, f := range change {
		f(&cfg)
	}
	if e.logins == nil {
		rt = e.open(cfg)
		return rt, devtest.Work(e.t, rt.Run)
	}
	rt = e.open(engineOf(cfg))
	if reg == nil {
		return rt, devtest.Work(e.t, rt.Run)
	}
	dsn, url := e.worker(reg.Topics())
	hands := e.open(workersOf(cfg, dsn, url))
	halt, stop := devtest.Work(e.t, hands.Run), devtest.Work(e.t, rt.Run)
	return rt, func() { halt(); stop() }
}

// view reads a job.
func (e *env) view(rt *quipu.Runtime, job quipu.Job) *store.JobView {
	e.t.Helper()
	v, err := below.Of(rt).Job(e.t.Context(), job.ID)
	require.NoError(e.t, err)
	return v
}

// ledger is the digits of an instance of the job.
func (e *env) ledger(rt *quipu.Runtime, job quipu.Job, activity string) string {
	e.t.Helper()
	for _, i := range e.view(rt, job).Instances {
		if i.Key.Activity == activity {
			return i.Ledger.String()
		}
	}
	return ""
}

// entries are the job's journal.
func (e *env) entries(rt *quipu.Runtime, job quipu.Job) []*journal.Entry {
	e.t.Helper()
	var out []*journal.Entry
	for entry, err := range rt.Journal(e.t.Context(), job) {
		require.NoError(e.t, err)
		out = append(out, entry)
	}
	return out
}

// eventually waits for an event by looking, within patience.
func (e *env) eventually(what string, cond func() bool) {
	e.t.Helper()
	require.Eventually(e.t, cond, patience, 20*time.Millisecond, what)
}
