package journaltest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var commits = cases{
	"load after a commit is the state that was applied": commitLoad,
	"batches of many sizes (J6)":                        commitBatches,
	"several plans of a job are one commit (J6)":        commitSeveral,
	"a batch is whole or not at all (J6)":               commitAtomic,
	"a plan is whole or not at all (C3)":                commitWhole,
	"a session counts its commits (L1)":                 commitSession,
}

// commitLoad runs a job. After every plan it compares what is loaded with the state that the
// plans so far were applied to.
func commitLoad(b *bench) {
	id := b.start(b.deploy(fork), "k")
	todo := []*collation.Message{Message(&b.view(id).Rows[0])}
	instances := map[collation.InstanceKey]*collation.Instance{}
	for ; len(todo) > 0; todo = todo[1:] {
		m := todo[0]
		st := got(b.load(b.c, m))(b).States[id]
		ch := got(b.decide(b.c, st, m))(b)
		require.NoError(b, b.commit(ch))
		again := got(b.load(b.c, m))(b).States[id]
		require.NoError(b, b.c.Rollback(b.ctx()))
		key := collation.InstanceKey{Activity: m.Activity, DAD: m.DAD}
		require.Equal(b, []any{st.Job, st.Instances[key], st.Rows[m.Row]}, []any{again.Job, again.Instances[key], again.Rows[m.Row]})
		if receipt := again.Receipts[m.GUID]; receipt != nil {
			require.Equal(b, st.Receipts[m.GUID].Ledger, receipt.Ledger)
		}
		for key, i := range st.Instances {
			instances[key] = i
		}
		todo = append(todo, caused(ch.Plan)...)
	}
	v := b.view(id)
	require.True(b, v.Ended)
	for _, i := range v.Instances {
		require.Equal(b, *instances[i.Key], i.Instance)
	}
}

// caused returns the messages of the rows that a plan inserts; workers answer at once.
func caused(p *collation.Plan) (out []*collation.Message) {
	for i := range p.Insert {
		if r := &p.Insert[i]; r.Kind == journal.MessageRequest {
			out = append(out, Response(r, success(`{}`)))
		} else {
			out = append(out, Message(r))
		}
	}
	return out
}

func commitBatches(b *bench) {
	f := b.deploy(one)
	for _, n := range []int{1, 3, 50, store.MaxBatch} {
		var list []store.Start
		for i := range n {
			list = append(list, starting(f, fmt.Sprintf("%d of %d", i, n), `{"n":1}`))
		}
		var ms []*collation.Message
		var ids []journal.JobID
		for _, o := range got(b.s.Start(b.ctx(), list, b.mode))(b) {
			ids = append(ids, o.Job)
			ms = append(ms, &collation.Message{
				Kind: journal.MessageStart, Job: o.Job, GUID: o.Job.Start(), Row: o.Job.Start(), Activity: "start", DAD: collation.RootDAD,
			})
		}
		for len(ms) > 0 {
			plans, err := b.batch(ms, nil)
			require.NoError(b, err)
			ms = nil
			for _, p := range plans {
				ms = append(ms, caused(p.Plan)...)
			}
		}
		ended := got(b.s.Ended(b.ctx(), ids))(b)
		require.Len(b, ended, n)
		for _, id := range ids {
			require.True(b, ended[id])
		}
		b.audit(ids[0], ids[n/2], ids[n-1])
	}
}

// batch handles messages of different jobs in one transaction; spoil may change the plans.
func (b *bench) batch(ms []*collation.Message, spoil func([]store.Chained)) (plans []store.Chained, err error) {
	b.Helper()
	l := got(b.load(b.c, ms...))(b)
	for _, m := range ms {
		plans = append(plans, got(b.decide(b.c, l.States[m.Job], m))(b))
	}
	if spoil != nil {
		spoil(plans)
	}
	return plans, b.commit(plans...)
}

// series commits changes of one job as plans of one batch.
func (b *bench) series(id journal.JobID, changes ...change) error {
	b.Helper()
	st := b.locked(b.c, store.Want{Job: id}).States[id]
	var plans []store.Chained
	for _, add := range changes {
		p := handmade(st, &collation.Message{Job: id})
		add(p, st)
		plans = append(plans, store.Chain(&st.Job, p))
		st.Apply(p)
	}
	return b.commit(plans...)
}

// commitSeveral moves an instance twice, and an output pointer, registers waits and cancels one of
// them, in one transaction.
func commitSeveral(b *bench) {
	id := b.jobs(1)[0]
	pass := collation.InstanceKey{Activity: "work", DAD: ",0,3"}
	kept := b.signal("t", "k", "x")
	require.Equal(b, store.SignalKept, b.tell(kept).State)
	last := collation.More{Leg1: guid(3), Turn: 7}
	require.NoError(b, b.series(id,
		all(ledgers(collation.LedgerWrite{Key: workKey, New: true, Join: true, After: 10_200_000_000}), results(pass, true, `1`)),
		all(ledgers(collation.LedgerWrite{Key: workKey, Join: true, Before: 10_200_000_000, After: 1_010_200_000_000, More: fullMore}),
			waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}), waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "l"})),
		all(ledgers(collation.LedgerWrite{Key: workKey, Join: true, Before: 1_010_200_000_000, After: 1_010_200_000_000, More: last}),
			results(pass, false, `2`), cancelsWait(guid(1), 0)),
	))
	require.Equal(b, &collation.Instance{Ledger: 1_010_200_000_000, More: last}, b.instance(id, workKey))
	require.Equal(b, `2`, string(b.more(id, collation.Need{Results: []collation.InstanceKey{pass}}).Results[pass].Output))
	v := b.view(id)
	require.Len(b, v.Waits, 1)
	require.Equal(b, guid(2), v.Waits[0].GUID)
	require.Equal(b, collation.HeldKept, b.stored(id, b.box(kept)).Held, "nobody waits for it any more")
}

func commitAtomic(b *bench) {
	var ms []*collation.Message
	var before []*store.JobView
	for _, id := range b.jobs(5) {
		before = append(before, b.view(id))
		ms = append(ms, Message(&b.view(id).Rows[0]))
	}
	for lost := range ms {
		_, err := b.batch(ms, func(plans []store.Chained) { plans[lost].Plan.Delete = append(plans[lost].Plan.Delete, guid(1)) })
		require.ErrorIs(b, err, store.ErrLost)
		for i := range ms {
			require.Equal(b, before[i], b.view(before[i].ID), "job %d of a batch with message %d lost", i, lost)
		}
	}
	got(b.batch(ms, nil))(b)
}

// commitWhole loses a row when everything else of a plan was right.
func commitWhole(b *bench) {
	ids := b.jobs(2)
	child := b.order(ids[0], 1, true)
	b.altered(ids[0], waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	kept := b.signal("t", "new", "x")
	b.tell(kept)
	before, other := b.view(ids[0]), b.view(ids[1])
	reply := b.reply(&child, 200)
	reply.Job = ids[1]
	err := b.alter(ids[0],
		ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: fullMore}),
		inserts(*reply), cancelsStart(keyOf(&child)), cancelsWait(guid(1), 0), waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "new"}),
		func(p *collation.Plan, _ *collation.State) { p.Delete = append(p.Delete, guid(8)) },
	)
	require.ErrorIs(b, err, store.ErrLost)
	require.Equal(b, []any{before, other, &child}, []any{b.view(ids[0]), b.view(ids[1]), b.stored(ids[0], keyOf(&child))})
	require.Equal(b, collation.HeldKept, b.stored(ids[0], b.box(kept)).Held)
}

func commitSession(b *bench) {
	d := b.committer()
	s1, before := b.c.Session()
	s2, _ := d.Session()
	require.NotEqual(b, s1, s2)
	id := b.jobs(1)[0]
	for i := range 2 {
		b.altered(id)
		s, seq := b.c.Session()
		require.Equal(b, []any{s1, before + int64(i) + 1}, []any{s, seq})
	}
	require.Zero(b, got(b.s.Prune(b.ctx(), 100))(b), "young markers stay (J4)")
}
