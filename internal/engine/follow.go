package engine

import (
	"context"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// Bounds of what a batch decides of what its own plans cause (L2).
const (
	// maxRounds bounds the plans of which each was caused by the one before, and maxEntries the
	// entries of one job.
	maxRounds  = 16
	maxEntries = 64
)

// follower decides what the plans of a batch cause, and carries it in the same transaction (L2). So
// it needs no gate: both commit, or neither does. It loads nothing: what needs a load, or is over a
// bound, stays a row, and is sent after the commit as ever.
//
// It decides the messages that a job sends itself, the inceptions of children, their outcomes for
// their parents, and the answers of early runs, which it begins.
type follower struct {
	*batch
	looked  int                    // how many of the batch's plans it has looked at
	round   []int                  // of each plan that it has added
	counted int                    // of how many plans it has counted the entries
	entries map[journal.JobID]int  // of each job
	still   map[journal.JobID]bool // jobs whose messages cause nothing here
	due     []caused               // what is to be decided
	runs    runs
}

// caused is a message that a plan has caused, with its row, or a response of an early run.
type caused struct {
	*message
	row   *collation.Row // nil: it is a response
	round int
}

// follow decides what the batch causes. The early runs that it begins learn the outcome of the commit
// by runs.begin or runs.fail.
func (b *batch) follow(ctx context.Context) {
	f := &follower{batch: b, entries: map[journal.JobID]int{}, still: b.causeless()}
	f.runs.follower = f
	b.runs = &f.runs
	for f.look(ctx); len(f.due) > 0 || f.runs.await(ctx); f.look(ctx) {
		due := f.due
		f.due = nil
		for _, c := range due {
			f.one(ctx, c)
		}
	}
	f.runs.stopWaiting()
	f.reguard()
}

// carriesMore reports whether the batch has plans beside those of its items. A nil batch has none.
func (b *batch) carriesMore() bool { return b != nil && len(b.plans) > b.own }

// causeless lists the jobs whose messages cause nothing here. Those are the jobs of messages that were
// delivered or published more than once, so that what kills its process meets a committed row (L4),
// and jobs of which effects are recorded: in one batch a row is changed in one way only.
func (b *batch) causeless() map[journal.JobID]bool {
	jobs := map[journal.JobID]bool{}
	for _, d := range b.decisions {
		if x := effectOf(d.item); x != nil {
			jobs[x.of.Job] = true
		}
		if m, is := d.item.(*message); is && (m.again || m.msg.Alone || m.stops > 0 || m.reject != nil) {
			jobs[m.msg.Job] = true
		}
	}
	return jobs
}

// look gathers what the plans cause that it has not looked at.
func (f *follower) look(ctx context.Context) {
	for ; f.looked < len(f.plans); f.looked++ {
		p := f.plans[f.looked].Plan
		if p.Entry == nil {
			continue
		}
		f.share(p)
		round := 1
		if at := f.looked - f.own; at >= 0 {
			round += f.round[at]
		}
		if round > maxRounds || f.still[p.Job] {
			continue
		}
		for i := range p.Insert {
			f.causes(ctx, p, &p.Insert[i], round)
		}
		for i := range p.Update {
			row := &p.Update[i]
			if row.Kind == journal.MessageRequest || slices.Contains(p.Released, row.GUID) {
				f.causes(ctx, p, row, round)
			}
		}
	}
}

// many reports whether a job has as many entries in the batch as it may have.
func (f *follower) many(job journal.JobID) bool {
	for ; f.counted < len(f.plans); f.counted++ {
		if p := f.plans[f.counted].Plan; p.Entry != nil {
			f.entries[p.Job]++
		}
	}
	return f.entries[job] >= maxEntries
}

// share gives the states of other jobs in the batch what the plan has done to their rows: what it
// sends them, and that a child has begun, whose start its parent can cancel no more (C15).
func (f *follower) share(p *collation.Plan) {
	for i := range p.Insert {
		r := &p.Insert[i]
		if r.Job == p.Job {
			continue
		}
		if st := f.loaded.States[r.Job]; st != nil {
			row := *r
			st.Rows[r.GUID] = &row
		}
	}
	st := f.loaded.States[p.Job]
	if p.Entry.Kind != journal.KindCreated || st == nil || st.Job.Parent == nil {
		return
	}
	if parent := f.loaded.States[st.Job.Parent.Job]; parent != nil && parent.Rows[p.Job.Start()] != nil {
		parent.Rows[p.Job.Start()] = nil
	}
}

// causes notes a row of a plan if what it sends can be decided here.
func (f *follower) causes(ctx context.Context, p *collation.Plan, row *collation.Row, round int) {
	if row.Publication == 0 || int64(row.PublishedAt) != p.Entry.Time || row.Held != "" {
		return
	}
	switch row.Kind {
	case journal.MessageRequest:
		f.runs.want(ctx, wanted{p, row, round})
	case journal.MessageLeg1, journal.MessageAnswer, journal.MessageWakeUp, journal.MessageCycle,
		journal.MessageOutcome, journal.MessageStart:
		f.due = append(f.due, caused{f.sent(row), row, round})
	}
}

// sent is the message of a row, as it would come from its lane.
func (f *follower) sent(row *collation.Row) *message {
	m := &message{delivery: inBatch{}, epoch: f.epoch()}
	m.msg = collation.Message{
		Kind: row.Kind, Job: row.Job, Row: row.GUID, Activity: row.Activity, DAD: row.DAD, Turn: row.Turn,
	}
	_ = m.identify() // its kind is one of those that have a GUID
	return m
}

// one decides a message that a plan has caused.
func (f *follower) one(ctx context.Context, c caused) {
	m := c.message
	var p *collation.Plan
	switch job := m.msg.Job; {
	case f.still[job], f.many(job), len(f.plans) >= store.MaxPlans, f.full():
	case c.row != nil && c.row.Kind == journal.MessageStart:
		p = f.child(ctx, m, c.row)
	default:
		p = f.step(c)
	}
	for len(f.round) < len(f.plans)-f.own {
		f.round = append(f.round, c.round)
	}
	if c.row == nil {
		f.runs.answered(m, p != nil)
	}
	if p == nil {
		return
	}
	f.followed = append(f.followed, m.msg.Kind)
	m.end = endElsewhere
	d := &decision{item: m}
	d.commits(p)
	f.decisions = append(f.decisions, d)
	f.timing.finished++
}

// step decides a message of a job on its state in the batch, or on a cached one (W6).
func (f *follower) step(c caused) *collation.Plan {
	m := c.message
	st, base := f.loaded.States[m.msg.Job], (*collation.State)(nil)
	if st == nil {
		if base = f.hot(m.msg.Job); base == nil {
			return nil
		}
		st = base.Fork(f.loaded.Now)
		if st.Flow == nil {
			if st.Flow = f.flows.Cached(st.Job.Flow.Digest); st.Flow == nil {
				return nil
			}
		}
	}
	if base != nil && c.row != nil { // the plan of another job has sent it
		row := *c.row
		st.Rows[row.GUID] = &row
	}
	if row := st.Rows[m.msg.Row]; row == nil || m.holder != "" && row.Holder != m.holder {
		return nil // it was withdrawn, or the answer is of a run that never had the request (L5)
	}
	p := f.attempt(st, m, collation.Follow)
	if p == nil {
		return nil
	}
	if base != nil {
		f.loaded.States[m.msg.Job] = st
		f.guessed.on(base, len(f.plans))
	}
	f.apply(st, p)
	m.decided(p)
	return p
}

// hot is the cached state of a job that this loop serves, for what a job of the batch sends it.
func (f *follower) hot(job journal.JobID) *collation.State {
	if f.loops[f.loopOf(job)] != f.loop || f.loaded.Busy[job] {
		return nil
	}
	return f.cache.state(job)
}

// child begins the child that a start row orders, if its key is its own and its flow is at hand.
func (f *follower) child(ctx context.Context, m *message, row *collation.Row) *collation.Plan {
	if row.Topic == collation.TopicAsk || f.loaded.States[row.Job] != nil {
		return nil
	}
	order, err := row.Order()
	if err != nil || order.Fault != "" || !order.Derived(row.Job) || !f.flows.Knows(order.Flow, order.Version) {
		return nil
	}
	f.progress.begin(m.about(), 0)
	defer func() { f.timing.deciding += f.progress.end() }()
	standing := *row
	p, err := m.order(ctx, f.batch, &standing)
	if err != nil || p == nil || p.Outcome == collation.Stopped {
		return nil
	}
	return p
}

// reguard has the commit compare what the further plans of jobs rest on that were decided on cached
// states (W6).
func (f *follower) reguard() {
	if !f.carriesMore() {
		return
	}
	plans := make(map[journal.JobID][]*collation.Plan, len(f.plans)-f.own)
	for i := f.own; i < len(f.plans); i++ {
		plans[f.plans[i].Plan.Job] = nil
	}
	for i := range f.plans {
		p := f.plans[i].Plan
		if of, moved := plans[p.Job]; moved {
			plans[p.Job] = append(of, p)
		}
	}
	for _, g := range f.guessed.bases {
		if of := plans[g.base.Job.ID]; of != nil {
			f.plans[g.at].Guard = store.GuardOf(g.base, of)
		}
	}
}

// inBatch is the delivery of a message that was decided in the batch of its cause: no bus has it.
type inBatch struct{}

// Ack implements transport.Delivery.
func (inBatch) Ack() error { return nil }

// Term implements transport.Delivery.
func (inBatch) Term(string) error { return nil }

// InProgress implements transport.Delivery.
func (inBatch) InProgress() error { return nil }

// Nak implements transport.Delivery: the row of the message sends it.
func (inBatch) Nak(time.Duration) error { return nil }

// Count implements transport.Delivery.
func (inBatch) Count() int { return 1 }

// Err implements transport.Delivery.
func (inBatch) Err() error { return nil }

// Message implements transport.Delivery.
func (inBatch) Message() *transport.Message { return &transport.Message{} }

// inBatchAnswer is the delivery of an early run's answer.
type inBatchAnswer struct {
	inBatch
	msg transport.Message
}

// Message implements transport.Delivery.
func (d *inBatchAnswer) Message() *transport.Message { return &d.msg }
