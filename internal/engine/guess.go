package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// guess decides what it can on hot states, without a load, and returns the items that are left
// (W6). Such a decision holds only if the job has not changed at the commit, which compares. A
// load is still needed for what would write nothing or does not simply go on, and for all items
// of a job if one of them is left or a call wants the job.
func (l *loop) guess(ctx context.Context, tx store.Committer, b *batch, w work) ([]*item, error) {
	if !l.hot.on() || !b.sends {
		return w.items, nil
	}
	jobs, cold := l.guessable(w)
	if len(jobs) == 0 {
		return w.items, nil
	}
	if hot := func(items []*item) bool { return l.hot.get(items[0].msg.Job) != nil }; !slices.ContainsFunc(jobs, hot) {
		b.misses = len(w.items)
		return w.items, nil // no trip to the clock before the load, which brings it
	}
	clock, err := l.load(ctx, tx, nil)
	if err == nil {
		err = tx.Rollback(ctx) // the trip to the clock, if any, holds no lock
	}
	if err != nil {
		return nil, err
	}
	b.loaded.Now = clock.Now
	for _, items := range jobs {
		if b.full() {
			b.repeats = append(b.repeats, items...)
		} else {
			cold = append(cold, l.guessJob(b, items)...)
		}
	}
	b.hits, b.misses = len(w.items)-len(cold), len(cold)
	return cold, nil
}

// guessable gathers, by job and in order, the items that may be decided on hot states; cold are
// the others.
func (l *loop) guessable(w work) (jobs [][]*item, cold []*item) {
	never := map[journal.JobID]bool{}
	for _, x := range w.calls {
		if x.want == nil || x.effect != nil {
			continue
		}
		for _, want := range x.want() {
			never[want.Job] = true
		}
	}
	for _, it := range w.items {
		never[it.msg.Job] = never[it.msg.Job] || !it.guessable()
	}
	place := make(map[journal.JobID]int, len(w.items))
	for _, it := range w.items {
		at, known := place[it.msg.Job]
		switch {
		case never[it.msg.Job]:
			cold = append(cold, it)
		case known:
			jobs[at] = append(jobs[at], it)
		default:
			place[it.msg.Job] = len(jobs)
			jobs = append(jobs, []*item{it})
		}
	}
	return jobs, cold
}

// guessable reports whether the message may be decided on a hot state.
func (it *item) guessable() bool {
	switch it.msg.Kind {
	case journal.MessageSignal, journal.MessageInterrupt:
		return false
	}
	return !it.msg.Alone && !it.msg.Entered && it.reject == nil
}

// guessJob decides all items of one job on its hot state, or none, and returns those that are
// left. Of one whose decision was stopped nothing is left: it would take as long on a loaded state.
func (l *loop) guessJob(b *batch, items []*item) (left []*item) {
	base := l.hot.get(items[0].msg.Job)
	if base == nil {
		return items
	}
	st := base.Fork(b.loaded.Now)
	if st.Flow == nil {
		if st.Flow = l.flows.Cached(st.Job.Flow.Digest); st.Flow == nil {
			return items
		}
	}
	plans, chained := make([]*collation.Plan, len(items)), make([]store.Chained, len(items))
	for i, it := range items {
		if st.Rows[it.msg.Row] == nil {
			l.freeSlotsOf(b, plans[:i])
			return items
		}
		p := l.attempt(b, st, it)
		if p != nil && p.Outcome == collation.Stopped {
			l.freeSlotsOf(b, plans[:i])
			b.halt(it)
			return slices.Concat(items[:i], items[i+1:])
		}
		if p == nil || p.Outcome != collation.Handled || !p.Done || p.Entry == nil {
			l.freeSlotsOf(b, plans[:i])
			return items
		}
		b.take(p, st.Now)
		plans[i], chained[i] = p, store.Chain(&st.Job, p)
		st.Apply(p)
	}
	chained[0].Guard = store.GuardOf(base, plans)
	for i, it := range items {
		b.decide(it, plans[i])
	}
	b.plans = append(b.plans, chained...)
	b.loaded.States[st.Job.ID] = st
	b.guessed = append(b.guessed, st.Job.ID)
	b.finished += len(items)
	return nil
}

// attempt is step on a hot state. It returns nil if state is missing, and after a panic: the
// decision on the loaded state then shows whether that panics, too.
func (l *loop) attempt(b *batch, s *collation.State, it *item) (p *collation.Plan) {
	l.progress.begin(it.busy(), 0)
	defer func() {
		b.deciding += l.progress.end()
		if recover() != nil {
			p = nil
		}
	}()
	row := s.Rows[it.msg.Row]
	if it.stolen(row) || it.read(row) != nil {
		return nil
	}
	p, _ = collation.Step(s, &it.msg, b.steps)
	return p
}

// forget drops the hot states that a commit has refuted. If the error names none, any of them
// may be the cause.
func (l *loop) forget(b *batch, err error) {
	if lost, named := errors.AsType[*store.LostError](err); named {
		l.cfg.Observer.Count(observer.MetricHot, int64(len(lost.Hot)), "outcome", "lost")
		l.hot.drop(lost.Hot...)
		return
	}
	l.hot.drop(b.guessed...)
}

// keep stores the states that a commit leaves as hot states. What its plans have inserted for
// other jobs is added to theirs.
func (l *loop) keep(b *batch) {
	if !l.hot.on() {
		return
	}
	l.cfg.Observer.Count(observer.MetricHot, int64(b.hits), "outcome", "hit")
	l.cfg.Observer.Count(observer.MetricHot, int64(b.misses), "outcome", "loaded")
	seen := make(map[journal.JobID]bool, len(b.plans))
	var sent map[journal.JobID][]*collation.Row // to other jobs; nil: nothing
	for i := range b.plans {
		p := b.plans[i].Plan
		for _, k := range p.Discard {
			l.hot.drop(k.Job)
		}
		for n := range p.Insert {
			if r := &p.Insert[n]; r.Job != p.Job {
				if sent == nil {
					sent = map[journal.JobID][]*collation.Row{}
				}
				sent[r.Job] = append(sent[r.Job], r)
			}
		}
		if seen[p.Job] {
			continue
		}
		seen[p.Job] = true
		switch st := b.loaded.States[p.Job]; {
		case st != nil:
			l.hot.put(st)
		case p.Chain == nil: // else see keepWarm
			l.hot.drop(p.Job)
		}
	}
	for job, rows := range sent {
		l.hot.add(job, rows)
	}
}
