package engine

import (
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/observer"
)

// tell hands the finished batch to the observer: counters, and for each plan of a traced job
// one span with its parts (5.4).
func (l *loop) tell(b *batch) {
	o := l.cfg.Observer
	o.Observe(observer.MetricBatch, float64(len(b.decided)))
	if len(b.plans) > 0 {
		o.Observe(observer.MetricCommit, b.took.Seconds())
	}
	end := time.Now()
	all := b.decided
	for _, p := range b.folded {
		all = append(all, &item{plan: p, msg: collation.Message{Kind: journal.MessageStart, Job: p.Job}})
	}
	for _, it := range all {
		p := it.plan
		if p.Entry != nil && p.Entry.Kind == journal.KindCreated {
			continue // its span is the root of its trace
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
		if p.Entry != nil && p.Entry.Trace != "" {
			o.Told(p.Entry.Trace, l.span(b, it, end))
		}
	}
}

func (l *loop) span(b *batch, it *item, end time.Time) observer.Span {
	e := it.plan.Entry
	job := &b.loaded.States[it.msg.Job].Job
	s := observer.Span{
		Name: spanNames[it.msg.Kind], Start: b.began, End: end,
		Subject: observer.Subject{
			Space: job.Space, Job: job.ID.String(), Key: job.Key, Flow: job.Flow.Name,
			Activity: e.Activity, DAD: e.DAD, GUID: e.GUID.String(), Turn: it.msg.Turn,
		},
	}
	for i := range it.plan.Ledgers {
		if m := &it.plan.Ledgers[i]; m.Before != m.After {
			s.Subject.Before, s.Subject.After = m.Before.String(), m.After.String()
			break
		}
	}
	if r := e.Response; r != nil {
		s.Subject.Code, s.Subject.Attempt, s.Subject.By = r.Code, r.Attempt, string(r.By)
		if !r.Child.IsZero() {
			s.Subject.Child = r.Child.String()
		}
	}
	committed := b.began.Add(b.took)
	for _, m := range e.Marks {
		if name := stepNames[m]; name != "" {
			s.Children = append(s.Children, observer.Span{Name: name, Subject: stepSubject(s.Subject, it.plan), Start: b.began, End: committed})
		}
	}
	s.Children = append(s.Children, observer.Span{Name: observer.SpanCommit, Start: b.began, End: committed})
	if len(it.plan.Insert) > 0 {
		s.Children = append(s.Children, observer.Span{Name: observer.SpanPublish, Start: committed, End: end})
	}
	return s
}

// spanNames are the span names by message kind.
var spanNames = map[journal.MessageKind]string{
	journal.MessageStart:     observer.SpanTrigger,
	journal.MessageLeg1:      observer.SpanLeg1,
	journal.MessageResponse:  observer.SpanLeg2,
	journal.MessageAnswer:    observer.SpanLeg2,
	journal.MessageWakeUp:    observer.SpanWakeUp,
	journal.MessageOutcome:   observer.SpanOutcome,
	journal.MessageCycle:     observer.SpanCycle,
	journal.MessageInterrupt: observer.SpanInterrupt,
}

var stepNames = map[journal.Mark]string{
	journal.MarkWork:     observer.SpanStep1,
	journal.MarkChildren: observer.SpanStep2,
	journal.MarkTasks:    observer.SpanStep3,
}

// stepSubject shows the GUID ledger, because steps change that.
func stepSubject(s observer.Subject, p *collation.Plan) observer.Subject {
	s.Before, s.After = "", ""
	if p.Entry.Receipts() {
		var before collation.GUIDLedger
		if p.Receipt != nil {
			before = p.Receipt.Before
		}
		s.Before, s.After = before.String(), collation.GUIDLedger(p.Entry.Receipt).String()
	}
	return s
}
