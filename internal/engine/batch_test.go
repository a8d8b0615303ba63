package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// carried are items for one batch.
func carried[T item](of ...T) []item {
	items := make([]item, len(of))
	for i, it := range of {
		items[i] = it
	}
	return items
}

// became are the items of a batch that have that fate, in order.
func (b *batch) became(f fate) (items []item) {
	for _, d := range b.decisions {
		if d.fate == f {
			items = append(items, d.item)
		}
	}
	return items
}

// T2, E12: a batch publishes what it leaves. A sleeping function that several wake-ups of the
// batch found is sent once. One that was answered or parked after its wake-up is not sent, nor
// one that only learned that something came. An answer that was held goes out at its turn.
func TestE12OneBatchSendsAFunctionOnce(t *testing.T) {
	t.Parallel()
	const now = collation.Micros(1000)
	job := journal.JobID{1}
	request := func(g byte, publication int, at collation.Micros, change ...func(*collation.Row)) collation.Row {
		r := collation.Row{
			Job: job, GUID: journal.GUID{g}, Kind: journal.MessageRequest, DAD: ",0",
			Publication: publication, PublishedAt: at, NextAt: at + 5,
		}
		for _, f := range change {
			f(&r)
		}
		return r
	}
	parked := func(r *collation.Row) { r.Held = collation.HeldParked }
	turned := func(r *collation.Row) { r.Kind = journal.MessageAnswer }
	two := func(r *collation.Row) { r.Pauses = make([]collation.Pause, 2) }
	plans := []*collation.Plan{
		{Job: job, RowWrites: collation.RowWrites{Update: []collation.Row{
			request(1, 2, now), request(2, 2, now), request(3, 2, now), request(4, 2, now),
		}}},
		{
			Job: job,
			RowWrites: collation.RowWrites{
				Update: []collation.Row{request(1, 2, now, two), request(2, 2, now, parked), request(5, 1, now-9)},
			},
		},
		{
			Job: job,
			RowWrites: collation.RowWrites{
				Update: []collation.Row{request(3, 2, now, turned)},
				Delete: []journal.GUID{{4}},
			},
		},
		{Job: job, RowWrites: collation.RowWrites{Insert: []collation.Row{request(6, 1, now)}}},
		{
			Job: job,
			RowWrites: collation.RowWrites{
				Update:   []collation.Row{request(7, 1, now, turned), request(8, 1, now, turned)},
				Released: []journal.GUID{{7}},
			},
		},
	}
	b := &batch{
		loop: &loop{Committer: &Committer{}},
		loaded: &store.Loaded{Now: now + 7, States: map[journal.JobID]*collation.State{
			job: {Job: collation.Job{ID: job, Key: "k", Generation: 3}, Now: now},
		}},
	}
	for _, p := range plans {
		b.plans = append(b.plans, store.Chained{Plan: p})
	}
	b.handOver()
	out := b.out
	require.Len(t, out, 3)
	require.Equal(t, store.Outgoing{Row: request(1, 2, now, two), JobKey: "k", Generation: 3}, out[0])
	require.Equal(t, request(6, 1, now), out[1].Row)
	require.Equal(t, request(7, 1, now, turned), out[2].Row, "an element that an earlier generation has answered")
}

// Two deliveries of one message in one batch: a transaction steps a message with steps left
// only once, because its next step reads what this one commits.
func TestOneStepPerTransaction(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, st := over(t, &hooked{}, Config{Stepwise: true})
	job := startsOne(t, st, deployed(t, st, oneWorker("1")), collation.Mode{Stepwise: true, Resend: 1e6})
	twice := func(m collation.Message) (*message, *message) {
		return &message{epoch: 1, msg: m, flow: flowKey{"one", "1"}}, &message{epoch: 1, msg: m, flow: flowKey{"one", "1"}}
	}
	a, again := twice(collation.Message{
		Kind: journal.MessageStart, Job: job, GUID: job.Start(), Row: job.Start(), Activity: "start", DAD: collation.RootDAD,
	})
	b, err := c.transact(ctx, []item{a, again}, true)
	require.NoError(t, err)
	require.Len(t, b.became(fateCommit), 2, "done in one step: the second finds it settled")
	leg1 := b.plans[0].Plan.Insert[0]
	a, again = twice(collation.Message{
		Kind: journal.MessageLeg1, Job: job, GUID: leg1.GUID, Row: leg1.GUID, Activity: "a", DAD: leg1.DAD,
	})
	b, err = c.transact(ctx, []item{a, again}, true)
	require.NoError(t, err)
	require.Equal(t, []item{a}, b.became(fateRepeat))
	require.Equal(t, []item{again}, b.became(fateLater))
}
