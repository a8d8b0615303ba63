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
	looked  int   // how many of the batch's plans it has looked at
	counted int   // and of how many it has counted the entries
	round   []int // of each plan
	entries map[journal.JobID]int
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
	if !b.follows || len(b.plans) >= store.MaxPlans {
		return
	}
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
	f.rounds(0)
	for ; f.looked < len(f.plans); f.looked++ {
		p := f.plans[f.looked].Plan
		if p.Entry == nil {
			continue
		}
		f.share(p)
		round := f.round[f.looked] + 1
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

// rounds notes the round of the plans that have come, and counts their entries.
func (f *follower) rounds(round int) {
	for ; f.counted < len(f.plans); f.counted++ {
		f.round = append(f.round, round)
		if p := f.plans[f.counted].Plan; p.Entry != nil {
			f.entries[p.Job]++
		}
	}
}

// share gives the states of other jobs in the batch what the plan has done to their rows: what it
// sends them, and that a child has begun, whose start its parent can cancel no more (C15).
func (f *follower) share(p *collation.Plan) {
	for i := range p.Insert {
		r := &p.Insert[i]
		if st := f.loaded.States[r.Job]; r.Job != p.Job && st != nil {
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
	case f.still[job], f.entries[job] >= maxEntries, len(f.plans) >= store.MaxPlans, f.full():
	case c.row != nil && c.row.Kind == journal.MessageStart:
		p = f.child(ctx, m, c.row)
	default:
		p = f.step(c)
	}
	f.rounds(c.round)
	if c.row == nil {
		f.runs.answered(m, p != nil)
	}
	if p == nil {
		return
	}
	f.runs.followed = append(f.runs.followed, m.msg.Kind)
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

// hot is the cached state of a job of another lane of this loop, for what a job of the batch sends it.
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

// reguard compares at the commit all that the decisions on cached states rest on (W6).
func (f *follower) reguard() {
	for _, g := range f.guessed.bases {
		var plans []*collation.Plan
		for i := g.at; i < len(f.plans); i++ {
			if p := f.plans[i].Plan; p.Job == g.base.Job.ID {
				plans = append(plans, p)
			}
		}
		f.plans[g.at].Guard = store.GuardOf(g.base, plans)
	}
}

// inBatch is the delivery of a message that was decided in the batch of its cause: no bus has it.
type inBatch struct{ transport.Delivery }

// Ack implements transport.Delivery.
func (inBatch) Ack() error { return nil }

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
