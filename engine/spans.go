package engine

import (
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/observer"
)

// tell hands the finished batch to the observer: for each plan of a traced job one span with
// its parts (5.4).
func (l *loop) tell(b *batch) {
	l.count(b)
	end := time.Now()
	all := b.decided
	for _, p := range b.folded {
		all = append(all, &item{plan: p, msg: collation.Message{Kind: journal.MessageStart, Job: p.Job}})
	}
	for _, it := range all {
		p := it.plan
		if p.Entry == nil || p.Entry.Kind == journal.KindCreated || p.Entry.Trace == "" {
			continue // the span of an inception is the root of its trace
		}
		l.cfg.Observer.Told(p.Entry.Trace, l.span(b, it, end))
	}
}

// count adds the batch to the metrics. What every message has is added up first, so that it
// costs the batch one call (O4).
func (l *loop) count(b *batch) {
	o := l.cfg.Observer
	o.Observe(observer.MetricBatch, float64(len(b.decided)))
	if len(b.plans) > 0 {
		o.Observe(observer.MetricCommit, b.took.Seconds())
	}
	handled, stale, unlicensed := int64(0), int64(0), int64(0)
	add := func(p *collation.Plan) {
		switch {
		case p.Entry != nil && p.Entry.Kind == journal.KindCreated:
		case p.Outcome == collation.Handled:
			handled++
		case p.Outcome == collation.Stale:
			stale++
		case p.Outcome == collation.Unlicensed, p.Outcome == collation.Settled, p.Outcome == collation.HeldBack:
			unlicensed++
		}
	}
	for _, it := range b.decided {
		add(it.plan)
	}
	for _, p := range b.folded {
		add(p)
	}
	o.Count(observer.MetricTransitions, handled)
	o.Count(observer.MetricStale, stale)
	o.Count(observer.MetricUnlicensed, unlicensed)
	for i := range b.plans {
		l.countPlan(b, b.plans[i].Plan)
	}
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
