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

// guessed is what a batch has from the cache (W6): the jobs whose messages are decided on cached
// states, and the chains on which effects are.
type guessed struct {
	jobs         []journal.JobID
	bases        []guessedJob
	chains       map[collation.RowKey]*collation.Chain
	hits, misses int // messages
}

// guessedJob is the cached state on which the plans of a job rest, and the first of them.
type guessedJob struct {
	base *collation.State
	at   int
}

// on notes a job whose next plan will be the batch's next one.
func (g *guessed) on(base *collation.State, at int) {
	g.jobs = append(g.jobs, base.Job.ID)
	g.bases = append(g.bases, guessedJob{base, at})
}

// guess decides what it can on cached states and chains, without a load (W6). Such a decision holds
// only if the job, or the row of the chain, has not changed at the commit, which compares.
func (b *batch) guess(ctx context.Context, tx store.Committer) error {
	if !b.cache.on() {
		return nil
	}
	if b.sends {
		if err := b.guessJobs(ctx, tx); err != nil {
			return err
		}
	}
	b.takeChains()
	return nil
}

// guessJobs decides messages on cached states. A load is still needed for what would write nothing
// or does not simply go on, and for all items of a job if one of them needs it or a call wants the
// job.
func (b *batch) guessJobs(ctx context.Context, tx store.Committer) error {
	jobs, messages := b.guessable()
	b.guessed.misses = messages
	cached := func(group []*decision) bool { return b.cache.state(group[0].item.job()) != nil }
	if !slices.ContainsFunc(jobs, cached) {
		return nil // no trip to the clock before the load, which brings it
	}
	clock, err := b.load(ctx, tx, nil)
	if err == nil {
		err = tx.Rollback(ctx) // the trip to the clock, if any, holds no lock
	}
	if err != nil {
		return err
	}
	b.loaded.Now = clock.Now
	for _, group := range jobs {
		switch {
		case b.full():
			for _, d := range group {
				d.fate = fateLater
			}
		case b.guessJob(group):
			b.guessed.hits += len(group)
		}
	}
	b.guessed.misses = messages - b.guessed.hits
	return nil
}

// guessable gathers, by job and in order, the messages that may be decided on cached states, and
// counts all messages.
func (b *batch) guessable() (jobs [][]*decision, messages int) {
	never := map[journal.JobID]bool{}
	for _, d := range b.decisions {
		m, is := d.item.(*message)
		switch {
		case is:
			messages++
			never[m.msg.Job] = never[m.msg.Job] || m.epoch != b.epoch() || !m.guessable()
		case effectOf(d.item) == nil:
			for _, want := range d.item.want(b) {
				never[want.Job] = true
			}
		}
	}
	place := make(map[journal.JobID]int, messages)
	for _, d := range b.decisions {
		m, is := d.item.(*message)
		if !is || never[m.msg.Job] {
			continue
		}
		if at, known := place[m.msg.Job]; known {
			jobs[at] = append(jobs[at], d)
			continue
		}
		place[m.msg.Job] = len(jobs)
		jobs = append(jobs, []*decision{d})
	}
	return jobs, messages
}

// guessable reports whether the message may be decided on a cached state.
func (m *message) guessable() bool {
	switch m.msg.Kind {
	case journal.MessageSignal, journal.MessageInterrupt:
		return false
	}
	return !m.msg.Alone && !m.msg.Entered && m.reject == nil
}

// guessJob decides all messages of one job on its cached state, or none: false. But one whose
// decision is stopped would take as long on a loaded state: it alone is decided so.
func (b *batch) guessJob(group []*decision) bool {
	base := b.cache.state(group[0].item.job())
	if base == nil {
		return false
	}
	st := base.Fork(b.loaded.Now)
	if st.Flow == nil {
		if st.Flow = b.flows.Cached(st.Job.Flow.Digest); st.Flow == nil {
			return false
		}
	}
	plans, chained := make([]*collation.Plan, 0, len(group)), make([]store.Chained, 0, len(group))
	own := make([]*collation.Plan, len(group))
	for i, d := range group {
		m := d.item.(*message)
		if m.outcome != nil {
			p := b.joins(st, m)
			if p == nil {
				return false
			}
			plans, chained = append(plans, p), append(chained, store.Chained{Plan: p})
		}
		p := b.attempt(st, m, stepOnce)
		if p != nil && p.Outcome == collation.Stopped {
			d.commits(p)
			b.timing.finished++
			return false
		}
		if p == nil || p.Outcome != collation.Handled || !p.Done || p.Entry == nil {
			return false
		}
		own[i], plans, chained = p, append(plans, p), append(chained, store.Chain(&st.Job, p))
		st.Apply(p)
	}
	chained[0].Guard = store.GuardOf(base, plans)
	for i, d := range group {
		d.item.(*message).decided(own[i])
		d.commits(own[i])
	}
	b.guessed.on(base, len(b.plans))
	b.plans = append(b.plans, chained...)
	b.loaded.States[st.Job.ID] = st
	b.timing.finished += len(group)
	return true
}

// attempt steps a message on a cached state. It returns nil if state is missing, if a run of another
// process has written the row since, and after a panic: the decision on the loaded state then shows
// whether that panics, too.
func (b *batch) attempt(
	s *collation.State, m *message, step func(*collation.State, *collation.Message, collation.Mode) *collation.Plan,
) (p *collation.Plan) {
	row := s.Rows[m.msg.Row]
	if row == nil || m.stolen(row) || m.read(row) != nil ||
		m.moved && (row.Holder == "" || row.Session != b.mode.Session) {
		return nil
	}
	b.progress.begin(m.about(), 0)
	defer func() {
		b.timing.deciding += b.progress.end()
		if recover() != nil {
			p = nil
		}
	}()
	return step(s, &m.msg, b.mode)
}

// stepOnce is collation.Step without what it needs.
func stepOnce(s *collation.State, m *collation.Message, mode collation.Mode) *collation.Plan {
	p, _ := collation.Step(s, m, mode)
	return p
}

// takeChains gives the batch the cached chains on which its effects can be decided. All effects of
// a chain are decided on what is cached, or none.
func (b *batch) takeChains() {
	loads := map[collation.RowKey]bool{}
	for _, d := range b.decisions {
		if x := effectOf(d.item); x != nil && (x.loads || x.of.Resumes) {
			loads[x.of.Key()] = true
		}
	}
	for _, d := range b.decisions {
		x := effectOf(d.item)
		if x == nil {
			continue
		}
		k := x.of.Key()
		if chain := b.cache.takeChain(k); chain != nil && !loads[k] {
			if b.guessed.chains == nil {
				b.guessed.chains = map[collation.RowKey]*collation.Chain{}
			}
			b.guessed.chains[k] = chain
		}
	}
}

// forget drops the states that a commit has refuted from the cache. If the error names none, any
// of them may be the cause.
func (b *batch) forget(err error) {
	if lost, named := errors.AsType[*store.LostError](err); named {
		b.cfg.Observer.Count(observer.MetricHot, int64(len(lost.Hot)), "outcome", "lost")
		b.cache.drop(lost.Hot...)
		return
	}
	b.cache.drop(b.guessed.jobs...)
}

// keep stores in the cache what a commit leaves: the states of jobs, with the rows that the plans
// of others have inserted for them, and the chains of effects.
func (b *batch) keep() {
	if !b.cache.on() {
		return
	}
	b.cfg.Observer.Count(observer.MetricHot, int64(b.guessed.hits), "outcome", "hit")
	b.cfg.Observer.Count(observer.MetricHot, int64(b.guessed.misses), "outcome", "loaded")
	seen := make(map[journal.JobID]bool, len(b.plans))
	var sent map[journal.JobID][]*collation.Row // to other jobs; nil: nothing
	handled := b.handledRows()
	for i := range b.plans {
		p := b.plans[i].Plan
		for _, k := range p.Discard {
			b.cache.drop(k.Job)
		}
		for n := range p.Insert {
			if r := &p.Insert[n]; r.Job != p.Job && !handled[r.GUID] {
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
			b.cache.put(st)
		case p.Chain == nil: // else see keepChains
			b.cache.drop(p.Job)
		}
	}
	for job, rows := range sent {
		b.cache.add(job, rows)
	}
	b.keepChains()
}

// handledRows are the rows that a batch has changed or ended that carries what its own plans cause: of
// the rows that it inserts, those are in the states of their jobs already.
func (b *batch) handledRows() map[journal.GUID]bool {
	if !b.carriesMore() {
		return nil
	}
	handled := map[journal.GUID]bool{}
	for i := range b.plans {
		p := b.plans[i].Plan
		for n := range p.Update {
			handled[p.Update[n].GUID] = true
		}
		for _, g := range p.Delete {
			handled[g] = true
		}
		for _, k := range p.CancelStarts {
			handled[k.GUID] = true
		}
	}
	return handled
}

// keepChains stores the chains that the commit has moved, and moves the requests' rows in the
// cached states of their jobs.
func (b *batch) keepChains() {
	type moved struct {
		was  int64 // the row's rev before
		last *collation.ChainWrite
	}
	var all map[collation.RowKey]moved
	for i := range b.plans {
		p := b.plans[i].Plan
		if p.Chain == nil || p.Entry != nil {
			continue
		}
		k := collation.RowKey{Job: p.Job, GUID: p.Chain.Request}
		m, again := all[k]
		if !again && p.Chain.Row != nil {
			m.was = p.Chain.Row.Rev - 1
		}
		m.last = p.Chain
		if all == nil {
			all = map[collation.RowKey]moved{}
		}
		all[k] = m
	}
	for k, m := range all {
		if b.loaded.States[k.Job] == nil { // else that has the row as it is now
			b.cache.move(k, m.last.Row, m.was)
		}
		if chain := b.loaded.Chains[k]; chain != nil {
			b.cache.putChain(k, chain, m.last)
		}
	}
}
