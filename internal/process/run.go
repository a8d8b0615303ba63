package process

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/internal/archive"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/journal/postgres"
)

// Run works for the space until ctx ends. Then it drains: it takes no new work, and running
// batches and handlers get Config.Drain to finish (T10). A second call returns ErrRun.
func (p *Process) Run(ctx context.Context) error {
	if p.ran.Swap(true) {
		return ErrRun
	}
	parts := make([]func(context.Context) error, len(p.cfg.Roles))
	for i, role := range p.cfg.Roles {
		var err error
		if parts[i], err = p.part(role); err != nil {
			return err
		}
	}
	if p.cfg.Observer.Traces() && slices.Contains(p.cfg.Roles, RoleEngine) {
		parts = append(parts, p.traces)
	}
	leave, err := p.join(ctx)
	if err != nil {
		return err
	}
	defer leave()
	defer p.drains.Store(true) // at the latest; normally set when ctx ends
	defer context.AfterFunc(ctx, func() { p.drains.Store(true) })()
	if ctx.Err() == nil {
		close(p.ready)
		p.cfg.Logger.Info("ready", "space", p.cfg.Space, "roles", p.cfg.Roles, "topics", p.topics())
	}
	defer func() { p.cfg.Logger.Info("drained", "space", p.cfg.Space) }()
	g, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		g.Go(func() error { return part(ctx) })
	}
	return g.Wait()
}

// Ready returns a channel that is closed when Run takes work: the session of the process is open.
func (p *Process) Ready() <-chan struct{} { return p.ready }

// topics lists the topics that this process serves.
func (p *Process) topics() []string {
	return p.cfg.topics()
}

// join opens the session of the process and keeps it renewed, if the process uses NATS. It
// returns once the session is open or ctx has ended; leave ends the session. A process whose
// number of lanes differs from that of the others is refused.
func (p *Process) join(ctx context.Context) (leave func(), err error) {
	if p.eng == nil {
		return func() {}, nil
	}
	if err := p.sameLanes(ctx); err != nil {
		return nil, err
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	opened, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- p.session.Run(keeping, opened) }()
	select {
	case <-opened:
	case <-ctx.Done():
	}
	return func() { stop(); <-ended }, nil
}

// part returns what a role runs until its context ends.
func (p *Process) part(role string) (func(context.Context) error, error) {
	switch {
	case role == RoleSchedule:
		return p.Scheduler().Run, nil
	case role == RoleRetention:
		keep := archive.To(p.cfg.Archive)
		return func(ctx context.Context) error { return engine.Retain(ctx, p.Store, keep, p.cfg.Logger) }, nil
	case p.eng == nil && p.Bus != nil:
		return nil, fmt.Errorf("%w: the role %s needs a database login that may read the keys of the space: one with the role %s", ErrConfig, role, postgres.RoleName(p.cfg.Space, "engine"))
	case p.eng == nil:
		return nil, fmt.Errorf("%w: the role %s needs NATS, and Config.NATS is empty: give a URL such as nats://host:4222 (with ConfigFromEnv: QUIPU_NATS, or QUIPU_DEV)", ErrConfig, role)
	case role == RoleEngine:
		return p.eng.Run, nil
	case p.cfg.Workers != nil:
		return p.workers, nil
	}
	return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil // there are no handlers to run
}

// Scheduler starts the jobs of flows with a schedule, and hands a schedule over to another version.
func (p *Process) Scheduler() *engine.Scheduler {
	return &engine.Scheduler{
		Store: p.Store, Flows: p.Flows, Kept: p.Kept, Begin: p.Begin, Observer: p.cfg.Observer, Logger: p.cfg.Logger,
	}
}

func (p *Process) workers(ctx context.Context) error {
	c, eng := p.cfg, p.eng.Config()
	w, err := work.NewRuntime(work.Config{
		Registry: c.Workers, Bus: eng.Bus, Store: p.Committer.Worker(), Space: c.Space, Lanes: eng.Lanes,
		Holder:      holder(eng.Writer),
		Concurrency: c.Concurrency, Session: p.session, Ran: p.session.Ran, Early: p.early, Drain: c.Drain,
		AckWait: c.AckWait, ResponseWait: responseWait(c.AckWait),
		DeadLetter: p.Committer.DeadLetter, Epoch: p.eng.Publisher().Epoch.Load, Observer: c.Observer,
		Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	p.serving.Store(w)
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
