package process

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/internal/local"
	"github.com/quipu-journal/quipu/internal/session"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/traffic"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

// Process is what one process of a space has: its connections, its committer, and what it runs.
type Process struct {
	Store     *postgres.Store
	Bus       *nats.Bus // nil without NATS
	Flows     *engine.Flows
	Waiters   *engine.Waiters // serves the calls of Wait
	Committer *engine.Committer
	Keys      *keyring.Keeper

	cfg     Config
	eng     *engine.Engine // nil without NATS
	session *session.Keeper
	traffic traffic.Counts
	early   *early.Topics      // nil: nothing begins before its cause has committed
	private bool               // the space keeps digests of keys (S15)
	login   string             // at the database; "" for a process that only reads
	stop    context.CancelFunc // stops the committer
	stopped chan error
	serving atomic.Pointer[work.Runtime] // set while the handlers are served
	unwatch func()                       // stops the watcher; nil: there is none
	ran     atomic.Bool
	forget  func()                        // ends the reading of gauges
	ready   chan struct{}                 // closed when Run takes work
	drains  atomic.Bool                   // set when Run drains, and never reset
	unleft  atomic.Pointer[store.Trouble] // the newest mark could not be left in NATS
}

// Open connects to Postgres, checks its settings (S7), migrates the schema unless NoMigrate is set,
// and connects to NATS where it is configured. Errors are those of quipu.Open.
func Open(ctx context.Context, cfg Config) (*Process, error) {
	p := &Process{cfg: cfg, ready: make(chan struct{}), forget: func() {}}
	st, err := postgres.Open(ctx, postgres.Config{
		DSN: cfg.Postgres, Space: cfg.Space, MaxConns: cfg.MaxConns, Logger: cfg.Logger,
		Migrating: !cfg.NoMigrate, AnyDatabase: cfg.Mode.AnyDatabase, Accepted: p.accepted, Writer: cfg.Name,
		Build: cfg.Build,
	})
	if _, unreadable := errors.AsType[*postgres.DSNError](err); unreadable {
		return nil, fmt.Errorf("%w: Config.Postgres: %w", ErrConfig, err)
	}
	if err != nil {
		return nil, p.alsoAway(ctx, err)
	}
	p.Store = st
	p.Waiters = engine.NewWaiters(engine.WaitersConfig{
		Store: st, Listen: p.listen, Look: cfg.WaitLook, Logger: cfg.Logger,
		Runs: func(job journal.JobID) bool { return p.Committer.Runs(job) },
	})
	if err := p.admit(ctx); err != nil {
		st.Close()
		return nil, p.alsoAway(ctx, err)
	}
	if err := p.connect(ctx); err != nil {
		p.Close()
		return nil, err
	}
	p.forget = cfg.Observer.Ask(p.gauges)
	return p, nil
}

// connect connects to NATS, where it is configured, and starts the committer.
func (p *Process) connect(ctx context.Context) (err error) {
	c, how := p.cfg, p.cfg.Mode
	if !how.NoEarly && !how.NoLocal {
		p.early = early.NewTopics()
	}
	topics := p.earlyTopics()
	p.countEarly(topics)
	p.session = session.New(session.Config{
		Store: p.Store, Process: p.self(), Troubles: p.tells, Busy: func() store.Busy {
			return p.Committer.Busy().Told()
		},
		Early:   func() []store.EarlyRuns { return p.early.Runs(topics) },
		Suspend: func(topics []string) { p.early.Suspend(topics) }, Logger: c.Logger,
	})
	if p.Keys, err = keyring.Open(ctx, p.Store, c.Logger); err != nil {
		return err
	}
	p.Store.Seal(p.Keys)
	p.checkKeys()
	if err := p.mayServe(ctx); err != nil {
		return err
	}
	if p.private, err = p.Store.PrivateKeys(ctx); err != nil {
		return err
	}
	cfg := engine.Config{
		Session: p.session, Lease: c.Lease, AckWait: c.AckWait, Store: p.Store, Space: c.Space, Private: p.private,
		Lanes: c.Lanes, Committers: c.Committers, MaxBatch: c.MaxBatch, HotBytes: c.HotBytes,
		Stepwise: how.Stepwise, NoFold: how.NoFold, Resend: c.Resend, Writer: c.Name, Build: c.Build, Login: p.login,
		Ended: p.Waiters.Over, Traffic: &p.traffic, Observer: c.Observer, Logger: c.Logger,
	}
	if c.NATS != nil {
		if err := p.reach(ctx); err != nil {
			return err
		}
		if p.publishes() {
			cfg.Bus = p.Bus
		}
		if cfg.Bus != nil && !how.NoLocal {
			here := local.New(p.Bus, holder(c.Name))
			here.Traffic = &p.traffic
			cfg.Bus, cfg.Local = here, here
		}
		if cfg.NoFollow = how.NoEarly; !how.NoEarly {
			cfg.Early = p.early
		}
	}
	if p.Committer, err = engine.NewCommitter(ctx, cfg); err != nil {
		return err
	}
	p.Flows = p.Committer.Flows()
	if cfg.Bus != nil {
		if p.eng, err = engine.Over(p.Committer); err != nil {
			return err
		}
	}
	if err := p.watch(ctx); err != nil {
		return err
	}
	committing, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop, p.stopped = stop, make(chan error, 1)
	go func() {
		watched := make(chan struct{})
		go func() { p.Keys.Run(committing); close(watched) }()
		err := p.Committer.Run(committing)
		<-watched
		p.stopped <- err
	}()
	return nil
}

// watch looks which database this is, and goes on looking until Close (S13).
func (p *Process) watch(ctx context.Context) error {
	if p.cfg.Mode.AnyDatabase {
		return nil
	}
	w := &watcher{p: p}
	if err := w.look(ctx); errors.Is(err, store.ErrAnotherDatabase) {
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() { w.run(watching); close(ended) }()
	p.unwatch = func() { stop(); <-ended }
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
func (p *Process) reach(ctx context.Context) (err error) {
	c := p.cfg
	over := c.onNATS()
	over.Engines, over.Keys = p.session.Engines, p.Keys
	over.Refused = func(why error) { c.Observer.Count(observer.MetricRefused, 1, "reason", refusedBecause(why)) }
	for _, reason := range []string{"forged", "no_key", "topic", "old"} { // they are there before the first one: an alert compares them with that
		c.Observer.Count(observer.MetricRefused, 0, "reason", reason)
	}
	if p.Bus, err = nats.Open(ctx, over); err != nil {
		return err
	}
	if err := p.Bus.Reach(ctx, p.natsWait(ctx)); err != nil {
		return store.Unavailable(err.Error())
	}
	return p.checkNATS(ctx)
}

// publishes says whether this process sends what it starts. A client that cannot sign leaves that
// to the engines: the database announces it (W9).
func (p *Process) publishes() bool {
	ring := p.Keys.Ring()
	return !ring.On() || p.Decides() || p.cfg.part() == nats.Worker
}

// listen listens on the job's subject, if there is a bus (W5).
func (p *Process) listen(job [16]byte, told func()) (stop func(), err error) {
	if p.Bus == nil {
		return func() {}, nil
	}
	return p.Bus.Listen(job, told)
}

// Close ends the connections and every open Wait. Call it after Run has returned.
func (p *Process) Close() {
	p.forget()
	p.Waiters.Close()
	if p.unwatch != nil {
		p.unwatch()
		p.unwatch = nil
	}
	if p.stop != nil {
		p.stop()
		if err := <-p.stopped; err != nil {
			p.cfg.Logger.Warn("the committer ended with an error", "error", err)
		}
		p.stop = nil
	}
	if p.Bus != nil {
		_ = p.Bus.Close()
	}
	p.Store.Close()
}
