package process

import (
	"context"
	"errors"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// Begin starts checked jobs, at most MaxStarts, under the caller's span. A start fails with
// engine.ErrFlowMoved when another version of its flow has become active.
func (p *Process) Begin(ctx context.Context, starts []store.Start) []store.Started {
	trace := p.cfg.Observer.Trace(ctx)
	for i := range starts {
		starts[i].Trace = trace
	}
	begin := p.Committer.Start
	if !p.Decides() {
		begin = p.Committer.Ask // a login without the keys makes no inception (S8)
	}
	started := begin(ctx, starts)
	for i := range started {
		p.cfg.Observer.Count(observer.MetricStarts, 1, "outcome", startOutcome(started[i].Err))
	}
	return started
}

// startOutcome names how a start ended, for a metric.
func startOutcome(err error) string {
	there, is := errors.AsType[*store.AlreadyStartedError](err)
	switch {
	case err == nil:
		return "begun"
	case !is:
		return "failed"
	case there.SameFlow && there.SameInput:
		return "existing"
	}
	return "conflict"
}

// Kept is what the space keeps of a key (S15).
func (p *Process) Kept(key string) string {
	c := engine.Config{Space: p.cfg.Space, Private: p.private}
	return c.KeptKey(key)
}
