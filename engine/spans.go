package engine

import (
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/observer"
)

// tell hands the finished batch to the observer: counters, and for each plan when it was committed
// and published, which its entry does not tell (O2).
func (l *loop) tell(b *batch) {
	o := l.cfg.Observer
	o.Observe(observer.MetricBatch, float64(len(b.decided)))
	if len(b.plans) > 0 {
		o.Observe(observer.MetricCommit, b.took.Seconds())
	}
	end, committed := time.Now(), b.began.Add(b.took)
	all := b.decided
	for _, p := range b.folded {
		all = append(all, &item{plan: p, msg: collation.Message{Kind: journal.MessageStart, Job: p.Job}})
	}
	for _, it := range all {
		p := it.plan
		if p.Entry != nil && p.Entry.Kind == journal.KindCreated {
			continue // the message's next entry counts
		}
		switch p.Outcome {
		case collation.Handled:
			o.Count(observer.MetricTransitions, 1)
		case collation.Stale:
			o.Count(observer.MetricStale, 1)
		case collation.Unlicensed, collation.Settled, collation.HeldBack:
			o.Count(observer.MetricUnlicensed, 1)
		}
		if len(p.Dead) > 0 {
			o.Count(observer.MetricDead, int64(len(p.Dead)), "reason", p.Dead[0].Reason)
		}
		if p.Entry == nil || !handles(p.Entry.Kind) {
			continue
		}
		spans := [2]observer.Span{{Name: observer.SpanCommit, Start: b.began, End: committed}}
		n := 1
		if len(p.Insert) > 0 {
			spans[1] = observer.Span{Name: observer.SpanPublish, Start: committed, End: end}
			n++
		}
		o.Told(observer.Message{Job: p.Entry.Job, Traceparent: p.Entry.Trace, GUID: p.Entry.GUID}, spans[:n]...)
	}
}

// handles says whether an entry of the kind handles a message, and so gives it a span.
func handles(k journal.Kind) bool {
	return k == journal.KindLeg1 || k == journal.KindLeg2 || k == journal.KindStale || k == journal.KindInterrupt
}
