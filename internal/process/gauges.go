package process

import (
	"context"
	"errors"
	"slices"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/traffic"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// gauges reads what the metrics say of now (O4). Every process has its own gauges; those of the
// space are read by its engines, so that a hundred workers do not ask a hundred times.
func (p *Process) gauges(ctx context.Context) ([]observer.Reading, error) {
	var out readings
	pool := p.Store.Pool()
	out.add(observer.MetricWaiting, float64(p.Waiters.Len()))
	out.troubles(p)
	out.busy(p.Committer.Busy())
	p.traffic.Each(func(kind journal.MessageKind, way traffic.Way, n int64) {
		out.add(observer.MetricMessages, float64(n), "kind", string(kind), "way", way.String())
	})
	out.add(observer.MetricConnections, float64(pool.Used), "state", "used")
	out.add(observer.MetricConnections, float64(pool.Idle), "state", "idle")
	out.add(observer.MetricPoolLimit, float64(pool.Limit))
	out.add(observer.MetricPoolWaits, float64(pool.Waits))
	out.add(observer.MetricPoolWaited, pool.Waited.Seconds())
	if p.eng == nil || !slices.Contains(p.cfg.Roles, RoleEngine) || !p.ran.Load() {
		return out, nil
	}
	return out, errors.Join(
		p.failed("postgres", out.space(ctx, p)),
		p.failed("nats", out.queues(ctx, p)),
	)
}

// failed counts that gauges could not be read.
func (p *Process) failed(server string, err error) error {
	if err != nil {
		p.cfg.Observer.Count(observer.MetricBlind, 1, "server", server)
	}
	return err
}

// readings are the readings of one look.
type readings []observer.Reading

func (r *readings) add(metric string, value float64, attributes ...string) {
	*r = append(*r, observer.Reading{Metric: metric, Value: value, Attributes: attributes})
}

// busy adds what a loop of the committer has been doing for long.
func (r *readings) busy(b *engine.Busy) {
	on := map[bool]float64{}
	if b != nil {
		on[b.Deciding] = b.For.Seconds()
	}
	r.add(observer.MetricBusy, on[true], "on", "message")
	r.add(observer.MetricBusy, on[false], "on", "database")
}

// space adds what the database says.
func (r *readings) space(ctx context.Context, p *Process) error {
	g, err := p.Store.Gauges(ctx)
	if err != nil {
		return err
	}
	for of, n := range g.Jobs {
		r.add(observer.MetricJobs, float64(n), "flow", of.Flow, "state", string(of.State))
	}
	for of, n := range g.Closed {
		r.add(observer.MetricKept, float64(n), "flow", of.Flow, "state", string(of.State))
	}
	for reason, n := range g.Dead {
		r.add(observer.MetricDeadOpen, float64(n), "reason", reason)
	}
	for topic, n := range g.Running {
		r.add(observer.MetricRunning, float64(n.N), "topic", topic)
	}
	for _, role := range AllRoles() {
		r.add(observer.MetricSessions, float64(g.Processes[role]), "role", role)
	}
	r.add(observer.MetricOverdue, float64(g.Overdue.N))
	r.add(observer.MetricOverdueAge, g.Overdue.Age.Seconds())
	r.add(observer.MetricTimersLate, float64(g.Timers.N))
	r.add(observer.MetricTimersLateAge, g.Timers.Age.Seconds())
	r.add(observer.MetricRetention, float64(g.Expired.N))
	r.add(observer.MetricRetentionBehind, g.Expired.Age.Seconds())
	return nil
}

// troubles adds what keeps the process from its work.
func (r *readings) troubles(p *Process) {
	n := map[string]int{}
	for _, kind := range health.Kinds() {
		n[kind] = 0
	}
	for _, x := range p.troubles() {
		n[x.Kind]++
	}
	for kind, n := range n {
		r.add(observer.MetricTroubles, float64(n), "kind", kind)
	}
}

// queues adds what NATS says.
func (r *readings) queues(ctx context.Context, p *Process) error {
	q, err := p.Bus.Queues(ctx)
	if err != nil {
		return err
	}
	r.add(observer.MetricLanesUnpulled, float64(q.Unpulled))
	for queue, fill := range q.Fill {
		r.add(observer.MetricStreamFill, fill, "queue", queue.String())
	}
	for _, t := range q.Topics {
		r.add(observer.MetricQueued, float64(t.Queued), "topic", t.Topic)
		r.add(observer.MetricOldest, t.Oldest.Seconds(), "topic", t.Topic)
	}
	return nil
}
