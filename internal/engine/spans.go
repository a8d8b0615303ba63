package engine

import (
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/traffic"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// tell hands the finished batch to the observer: for each plan when it was committed and
// published, which its entry does not tell (O2).
func (l *loop) tell(b *batch, sent time.Time) {
	l.count(b)
	committed := b.timing.began.Add(b.timing.took)
	for i := range b.plans {
		p := b.plans[i].Plan
		if p.Entry == nil || !handles(p.Entry.Kind) {
			continue
		}
		spans := [2]observer.Span{{Name: observer.SpanCommit, Start: b.timing.began, End: committed}}
		n := 1
		if len(p.Insert) > 0 {
			spans[1] = observer.Span{Name: observer.SpanPublish, Start: committed, End: sent}
			n++
		}
		l.cfg.Observer.Told(observer.Message{Job: p.Entry.Job, Traceparent: p.Entry.Trace, GUID: p.Entry.GUID},
			spans[:n]...)
	}
}

// handles says whether an entry of the kind handles a message, and so gives it a span.
func handles(k journal.Kind) bool {
	return k == journal.KindLeg1 || k == journal.KindLeg2 || k == journal.KindStale || k == journal.KindInterrupt
}

// count adds the batch to the metrics. What every message has is added up first, so that it
// costs the batch one call (O4).
func (l *loop) count(b *batch) {
	o := l.cfg.Observer
	if len(b.plans) > 0 {
		o.Observe(observer.MetricCommit, b.timing.took.Seconds())
	}
	messages, handled, stale, withoutRow, leg1s := 0, int64(0), int64(0), int64(0), int64(0)
	for _, d := range b.decisions {
		if d.plan == nil || d.fate == fateEnded {
			continue
		}
		messages++
		switch d.plan.Outcome {
		case collation.NoRow, collation.Settled, collation.HeldBack:
			withoutRow++
		}
	}
	for i := range b.plans {
		p := b.plans[i].Plan
		switch {
		case p.Entry == nil || !handles(p.Entry.Kind):
		case p.Outcome == collation.Handled:
			handled++
		case p.Outcome == collation.Stale:
			stale++
		}
		leg1s += folded(p)
		l.countPlan(b, p)
	}
	l.cfg.Traffic.Add(journal.MessageLeg1, traffic.Folded, leg1s)
	for _, kind := range b.followed {
		l.cfg.Traffic.Add(kind, traffic.Folded, 1)
	}
	o.Observe(observer.MetricBatch, float64(messages))
	o.Count(observer.MetricTransitions, handled)
	o.Count(observer.MetricStale, stale)
	o.Count(observer.MetricWithoutRow, withoutRow)
}

// folded is how many Leg1s the plan handles that it dispatches itself (C11).
func folded(p *collation.Plan) (n int64) {
	if p.Entry == nil {
		return 0
	}
	for i := range p.Entry.Dispatched {
		if p.Entry.Dispatched[i].Folded != 0 {
			n++
		}
	}
	return n
}

// countPlan counts the dead letters of a plan, and the job that it begins, closes or
// quarantines.
func (l *loop) countPlan(b *batch, p *collation.Plan) {
	for i := range p.Dead {
		l.cfg.Observer.Count(observer.MetricDead, 1, "reason", p.Dead[i].Reason)
	}
	if p.NewState == "" || p.Repair != nil {
		return
	}
	flow := ""
	if st := b.loaded.States[p.Job]; st != nil {
		flow = st.Job.Flow.Name
	}
	if p.Entry != nil && p.Entry.Flow != nil {
		flow = p.Entry.Flow.Name
	}
	if p.NewState == journal.JobOpen {
		l.cfg.Observer.Count(observer.MetricBegun, 1, "flow", flow)
		return
	}
	l.cfg.Observer.Count(observer.MetricClosed, 1, "flow", flow, "state", string(p.NewState))
}
