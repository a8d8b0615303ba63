package quipu

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/internal/archive"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/internal/local"
	"github.com/quipu-journal/quipu/internal/session"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/tokens"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

// DefaultSpace is the space of a Config that names none.
const DefaultSpace = "default"

// Role is a part that a process can play in a space (T8).
type Role string

// The roles. Any number of processes may have each role, and a space needs every role in some
// process: without schedule no job starts by the clock; without retention closed jobs stay for
// good.
const (
	RoleEngine    Role = "engine"    // decides and commits; sends due dispatch rows
	RoleWorkers   Role = "workers"   // runs the handlers of Config.Workers
	RoleSchedule  Role = "schedule"  // starts the jobs of flows with a schedule; needs no NATS
	RoleRetention Role = "retention" // removes expired jobs (J7, W11); needs the rights of retention and owner, and no NATS
)

// AllRoles returns the roles of a Config that names none.
func AllRoles() []Role { return []Role{RoleEngine, RoleWorkers, RoleSchedule, RoleRetention} }

// ErrClosed says that the Runtime was closed before or during the call. The job goes on.
var ErrClosed = engine.ErrClosed

// ErrRun says that Run was called twice on one Runtime. Open another one.
var ErrRun = errors.New("a Runtime runs once: Run was called on it before")

// ErrConfig is wrapped by errors about a Config.
var ErrConfig = errors.New("quipu configuration")

// Runtime is a connection to one space. Its methods are safe for concurrent
// use. Close it when Run has returned.
type Runtime struct {
	cfg   Config
	how   below.Mode
	store *postgres.Store
	bus   *nats.Bus      // nil without NATS
	eng   *engine.Engine // nil without NATS
	flows *engine.Flows
	// waiters serves the calls of Wait.
	waiters *engine.Waiters

	committer *engine.Committer
	session   *session.Keeper
	keys      *keyring.Keeper
	private   bool               // the space keeps digests of keys (S15)
	login     string             // at the database; "" for a process that only reads
	stop      context.CancelFunc // stops the committer
	stopped   chan error
	serving   atomic.Pointer[work.Runtime] // set while the handlers are served
	unwatch   func()                       // stops the watcher; nil: there is none
	ran       atomic.Bool
	forget    func()        // ends the reading of gauges
	ready     chan struct{} // closed when Run takes work
	draining  atomic.Bool   // set when Run drains, and never reset
	tokens    *tokens.Looks
	unleft    atomic.Pointer[store.Trouble] // the newest mark could not be left in NATS
}

// Open connects to Postgres, checks its settings (S7), migrates the schema unless NoMigrate is
// set, and connects to NATS where a URL is given. It fails with ErrConfig, with ErrPreflight where
// a setting would break the promise, with ErrUnavailable where a server cannot be reached, with
// ErrSchema under NoMigrate where the space is of another build or not there (the error names the
// spaces that are), or with the server's own error.
func Open(ctx context.Context, cfg Config) (*Runtime, error) {
	return open(ctx, cfg, below.Mode{})
}

func open(ctx context.Context, cfg Config, how below.Mode) (*Runtime, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	rt := &Runtime{cfg: cfg, how: how, ready: make(chan struct{}), forget: func() {}}
	st, err := postgres.Open(ctx, postgres.Config{
		DSN: cfg.Postgres, Space: cfg.Space, MaxConns: cfg.MaxConns, Logger: cfg.Logger,
		Migrating: !cfg.NoMigrate, AnyDatabase: how.AnyDatabase, Accepted: rt.accepted, Writer: cfg.Name, Build: cfg.Build,
	})
	if _, unreadable := errors.AsType[*postgres.DSNError](err); unreadable {
		return nil, fmt.Errorf("%w: Config.Postgres: %w", ErrConfig, err)
	}
	if err != nil {
		return nil, rt.alsoAway(ctx, err)
	}
	rt.store, rt.tokens = st, tokens.New(st)
	rt.waiters = engine.NewWaiters(engine.WaitersConfig{
		Store: st, Listen: rt.listen, Look: cfg.WaitLook, Logger: cfg.Logger,
		Runs: func(job journal.JobID) bool { return rt.committer.Runs(job) },
	})
	if err := rt.admit(ctx); err != nil {
		st.Close()
		return nil, rt.alsoAway(ctx, err)
	}
	if err := rt.connect(ctx); err != nil {
		rt.Close()
		return nil, err
	}
	rt.forget = cfg.Observer.Ask(rt.gauges)
	return rt, nil
}

// connect connects to NATS, where it is configured, and starts the committer.
func (rt *Runtime) connect(ctx context.Context) (err error) {
	c, how := rt.cfg, rt.how
	rt.session = session.New(session.Config{
		Store: rt.store, Process: rt.process(), Troubles: rt.tells, Busy: func() store.Busy { return rt.committer.Busy().Told() },
		Logger: c.Logger,
	})
	if rt.keys, err = keyring.Open(ctx, rt.store, c.Logger); err != nil {
		return err
	}
	rt.store.Seal(rt.keys)
	rt.checkKeys()
	if err := rt.mayServe(ctx); err != nil {
		return err
	}
	if rt.private, err = rt.store.PrivateKeys(ctx); err != nil {
		return err
	}
	cfg := engine.Config{
		Session: rt.session, Lease: c.Lease, AckWait: c.AckWait, Store: rt.store, Space: c.Space, Private: rt.private, Lanes: c.Lanes, Committers: c.Committers, MaxBatch: c.MaxBatch, HotBytes: c.HotBytes,
		Stepwise: how.Stepwise, NoFold: how.NoFold, Resend: c.Resend, Writer: c.Name, Build: c.Build, Login: rt.login,
		Ended: rt.waiters.Over, Observer: c.Observer, Logger: c.Logger,
	}
	if c.usesNATS() {
		if err := rt.reach(ctx); err != nil {
			return err
		}
		if rt.publishes() {
			cfg.Bus = rt.bus
		}
		if cfg.Bus != nil && !how.NoLocal {
			here := local.New(rt.bus, holder(c.Name))
			cfg.Bus, cfg.Local = here, here
		}
	}
	if rt.committer, err = engine.NewCommitter(ctx, cfg); err != nil {
		return err
	}
	rt.flows = rt.committer.Flows()
	if cfg.Bus != nil {
		if rt.eng, err = engine.Over(rt.committer); err != nil {
			return err
		}
	}
	if err := rt.watch(ctx); err != nil {
		return err
	}
	committing, stop := context.WithCancel(context.WithoutCancel(ctx))
	rt.stop, rt.stopped = stop, make(chan error, 1)
	go func() {
		watched := make(chan struct{})
		go func() { rt.keys.Run(committing); close(watched) }()
		err := rt.committer.Run(committing)
		<-watched
		rt.stopped <- err
	}()
	return nil
}

// watch looks which database this is, and goes on looking until Close (S13).
func (rt *Runtime) watch(ctx context.Context) error {
	if rt.how.AnyDatabase {
		return nil
	}
	w := &watcher{rt: rt}
	if err := w.look(ctx); errors.Is(err, ErrAnotherDatabase) {
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() { w.run(watching); close(ended) }()
	rt.unwatch = func() { stop(); <-ended }
	return nil
}

// refusedBecause names why a message was refused, for a metric.
func refusedBecause(why error) string {
	if errors.Is(why, transport.ErrNoKey) {
		return "no_key"
	}
	return "forged"
}

// reach connects to NATS and checks it.
func (rt *Runtime) reach(ctx context.Context) (err error) {
	c := rt.cfg
	over := c.natsConfig()
	over.Engines, over.Keys = rt.session.Engines, rt.keys
	over.Refused = func(why error) { c.Observer.Count(observer.MetricRefused, 1, "reason", refusedBecause(why)) }
	for _, reason := range []string{"forged", "no_key", "topic", "old"} { // they are there before the first one: an alert compares them with that
		c.Observer.Count(observer.MetricRefused, 0, "reason", reason)
	}
	if rt.bus, err = nats.Open(ctx, over); err != nil {
		return err
	}
	if err := rt.bus.Reach(ctx, rt.natsWait(ctx)); err != nil {
		return store.Unavailable(err.Error())
	}
	return rt.checkNATS(ctx)
}

// publishes says whether this process sends what it starts. A client that cannot sign leaves that
// to the engines: the database announces it (W9).
func (rt *Runtime) publishes() bool {
	ring := rt.keys.Ring()
	return !ring.On() || rt.decides() || rt.cfg.onNATS() == nats.Worker
}

// listen listens on the job's subject, if there is a bus (W5).
func (rt *Runtime) listen(job [16]byte, told func()) (stop func(), err error) {
	if rt.bus == nil {
		return func() {}, nil
	}
	return rt.bus.Listen(job, told)
}

// Run works for the space until ctx ends. Then it drains: it takes no new work, and running
// batches and handlers get Config.Drain to finish (T10). A second call returns ErrRun.
func (rt *Runtime) Run(ctx context.Context) error {
	if rt.ran.Swap(true) {
		return ErrRun
	}
	parts := make([]func(context.Context) error, len(rt.cfg.Roles))
	for i, role := range rt.cfg.Roles {
		var err error
		if parts[i], err = rt.part(role); err != nil {
			return err
		}
	}
	if rt.cfg.Observer.Traces() && slices.Contains(rt.cfg.Roles, RoleEngine) {
		parts = append(parts, rt.traces)
	}
	leave, err := rt.join(ctx)
	if err != nil {
		return err
	}
	defer leave()
	defer rt.draining.Store(true) // at the latest; normally set when ctx ends
	defer context.AfterFunc(ctx, func() { rt.draining.Store(true) })()
	if ctx.Err() == nil {
		close(rt.ready)
		rt.cfg.Logger.Info("ready", "space", rt.cfg.Space, "roles", rt.cfg.Roles, "topics", rt.topics())
	}
	defer func() { rt.cfg.Logger.Info("drained", "space", rt.cfg.Space) }()
	g, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		g.Go(func() error { return part(ctx) })
	}
	return g.Wait()
}

// Ready returns a channel that is closed when Run takes work: the session of the process is open.
func (rt *Runtime) Ready() <-chan struct{} { return rt.ready }

// topics lists the topics that this process serves.
func (rt *Runtime) topics() []string {
	return rt.cfg.topics()
}

// join opens the session of the process and keeps it renewed, if the process uses NATS. It
// returns once the session is open or ctx has ended; leave ends the session. A process whose
// number of lanes differs from that of the others is refused.
func (rt *Runtime) join(ctx context.Context) (leave func(), err error) {
	if rt.eng == nil {
		return func() {}, nil
	}
	if err := rt.sameLanes(ctx); err != nil {
		return nil, err
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	opened, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- rt.session.Run(keeping, opened) }()
	select {
	case <-opened:
	case <-ctx.Done():
	}
	return func() { stop(); <-ended }, nil
}

// part returns what a role runs until its context ends.
func (rt *Runtime) part(role Role) (func(context.Context) error, error) {
	switch {
	case role == RoleSchedule:
		return rt.scheduler().Run, nil
	case role == RoleRetention:
		keep := archive.To(rt.cfg.Archive)
		return func(ctx context.Context) error { return engine.Retain(ctx, rt.store, keep, rt.cfg.Logger) }, nil
	case rt.eng == nil && rt.bus != nil:
		return nil, fmt.Errorf("%w: the role %s needs a database login that may read the keys of the space: one with the role %s", ErrConfig, role, postgres.RoleName(rt.cfg.Space, "engine"))
	case rt.eng == nil:
		return nil, fmt.Errorf("%w: the role %s needs NATS, and Config.NATS is empty: give a URL such as nats://host:4222 (with ConfigFromEnv: QUIPU_NATS, or QUIPU_DEV)", ErrConfig, role)
	case role == RoleEngine:
		return rt.eng.Run, nil
	case rt.cfg.Workers != nil:
		return rt.workers, nil
	}
	return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil // there are no handlers to run
}

func (rt *Runtime) scheduler() *engine.Scheduler {
	return &engine.Scheduler{
		Store: rt.store, Flows: rt.flows, Kept: rt.kept, Begin: rt.begin, Observer: rt.cfg.Observer, Logger: rt.cfg.Logger,
	}
}

func (rt *Runtime) workers(ctx context.Context) error {
	c, eng := rt.cfg, rt.eng.Config()
	w, err := work.NewRuntime(work.Config{
		Registry: c.Workers, Bus: eng.Bus, Store: rt.committer.Worker(), Space: c.Space, Lanes: eng.Lanes, Holder: holder(eng.Writer),
		Concurrency: c.Concurrency, Session: rt.session, Ran: rt.session.Ran, Drain: c.Drain, AckWait: c.AckWait,
		ResponseWait: responseWait(c.AckWait),
		DeadLetter:   rt.committer.DeadLetter, Epoch: rt.eng.Publisher().Epoch.Load, Observer: c.Observer, Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	rt.serving.Store(w)
	return w.Run(ctx)
}

// holder names this process in leases. Two processes may have the same Name, or
// the same host and pid in containers; their leases must not look alike (E4).
func holder(name string) string { return name + "-" + rand.Text()[:8] }

// responseWait keeps the wait for a response's PubAck within the ack wait of
// its request.
func responseWait(ackWait time.Duration) time.Duration {
	if ackWait <= 0 {
		return work.DefaultResponseWait
	}
	return min(work.DefaultResponseWait, ackWait/2)
}

// Close ends the connections and every open Wait. Call it after Run has returned.
func (rt *Runtime) Close() {
	rt.forget()
	rt.waiters.Close()
	if rt.unwatch != nil {
		rt.unwatch()
		rt.unwatch = nil
	}
	if rt.stop != nil {
		rt.stop()
		if err := <-rt.stopped; err != nil {
			rt.cfg.Logger.Warn("the committer ended with an error", "error", err)
		}
		rt.stop = nil
	}
	if rt.bus != nil {
		_ = rt.bus.Close()
	}
	rt.store.Close()
}
