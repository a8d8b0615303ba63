package process

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// self is what this process tells the others about itself.
func (p *Process) self() store.Process {
	c := p.cfg
	return store.Process{
		Name: c.Name, Build: c.Build, Roles: c.Roles, Topics: c.topics(), Early: p.earlyTopics(), Lanes: c.Lanes,
		Engine: slices.Contains(c.Roles, RoleEngine), Lease: c.Lease,
	}
}

// earlyTopics are the topics whose runs may begin in this process before their causes have committed.
func (p *Process) earlyTopics() []string {
	if p.early == nil || p.cfg.topics() == nil {
		return nil
	}
	return work.EarlyTopics(p.cfg.Workers)
}

// countEarly has the early runs of topics counted from 0: an alert compares a counter with that.
func (p *Process) countEarly(topics []string) {
	for _, topic := range topics {
		for _, outcome := range []string{"kept", "late", "dropped"} {
			p.cfg.Observer.Count(observer.MetricEarly, 0, "topic", topic, "outcome", outcome)
		}
	}
}

// lanesLook bounds the time for reading the lanes of other processes.
const lanesLook = 5 * time.Second

// sameLanes refuses a number of lanes that differs from that of the live engines (T9). A session of
// another process says nothing about an engine: a worker's login may write one with any number (S8).
func (p *Process) sameLanes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lanesLook)
	defer cancel()
	living, err := p.Store.Processes(ctx)
	if err != nil {
		return nil // opening the session will fail too, and waits for the database
	}
	for _, other := range living {
		if other.Engine && other.Lanes != p.cfg.Lanes {
			return fmt.Errorf("%w: Lanes is %d here and %d in process %s: all processes of a space have the same number; "+
				"to change it stop them all first", ErrConfig, p.cfg.Lanes, other.Lanes, other.Name)
		}
	}
	return nil
}
