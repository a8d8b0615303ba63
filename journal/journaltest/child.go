package journaltest

import (
	"encoding/json"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var children = map[string]func(*bench){
	"an order is due and claimed without a job (T1)":          childDue,
	"inception of a child is one transaction (1.11)":          childSpawn,
	"a child is begun once (C3, P6)":                          childOnce,
	"one of many at once begins it (P6)":                      childRace,
	"a start is taken back by test-and-set (C15)":             childCancel,
	"a start taken back and begun at once: one of them (C15)": childCancelRace,
	"the close of a parent finds what it awaits (C15)":        childAllRows,
	"rows of a job that never began are discarded (C5)":       childDiscard,
}

// order lets a job order its n-th child, of flow one, and returns the row.
func (b *bench) order(c store.Committer, parent journal.JobID, n int, awaited bool) collation.Row {
	b.Helper()
	child := collation.ChildID(guid(n), 1)
	var row collation.Row
	b.altered(c, parent, func(p *collation.Plan, st *collation.State) {
		body, err := json.Marshal(&collation.StartOrder{
			Flow: "one", Key: fmt.Sprint("child-", n), Input: []byte(`{"n":3}`),
			Parent: journal.Parent{
				Space: b.space(), Job: parent, Activity: "work", DAD: ",0,0", Leg1: guid(n), Turn: 1, Awaited: awaited,
			},
		})
		require.NoError(b, err)
		row = collation.Row{
			GUID: child.Start(), Job: child, Kind: journal.MessageStart, DAD: collation.RootDAD, Body: body,
			NextAt: st.Now, Origin: p.Entry.Seq,
		}
		if awaited {
			row.Sender = parent
		}
		inserts(row)(p, st)
	})
	return row
}

// spawning returns the start with which Spawn is called for an order.
func (b *bench) spawning(f *flow.Flow, row *collation.Row) store.Start {
	b.Helper()
	order, err := row.Order()
	require.NoError(b, err)
	return request(f, order.Key, string(order.Input))
}

// spawn begins the child of an order.
func (b *bench) spawn(row *collation.Row, reply *collation.Row) error {
	b.Helper()
	return b.s.Spawn(b.ctx(), row, b.spawning(b.deploy(one), row), reply, b.mode)
}

// reply returns an outcome of the order's child.
func (b *bench) reply(row *collation.Row, code int) *collation.Row {
	b.Helper()
	order, err := row.Order()
	require.NoError(b, err)
	r := order.Refusal(row.Job, code, "class", "why", 1, b.mode)
	return &r
}

func childDue(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	row := b.order(c, id, 1, true)
	require.ErrorIs(b, b.alter(c, id, inserts(row)), store.ErrLost, "it is ordered once")
	due := b.due(10)
	require.Len(b, due, 2)
	out, err := b.s.Claim(b.ctx(), claims(due, true))
	require.NoError(b, err)
	require.Len(b, out, 2)
	of := out[0]
	if of.Row.Job == id {
		of = out[1]
	}
	require.Equal(b, store.Outgoing{Row: *b.stored(c, id, keyOf(&row))}, of)
	require.Equal(b, 1, of.Row.Publication)
	require.Equal(b, id, of.Row.Sender)
	require.NoError(b, b.spawn(&of.Row, nil), "its publication is part of no test-and-set")
}

func childSpawn(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	row := b.order(c, id, 1, true)
	order, err := row.Order()
	require.NoError(b, err)
	require.NoError(b, b.spawn(&row, nil))
	v := b.view(row.Job)
	require.Equal(b, journal.JobOpen, v.State)
	require.Equal(b, int64(1), v.Semaphore)
	require.Equal(b, int64(1), v.Generation)
	require.Equal(b, "child-1", v.Key)
	require.Equal(b, &order.Parent, v.Parent)
	require.Len(b, v.Instances, 1)
	require.Equal(b, collation.TriggerBorn, v.Instances[0].Ledger)
	require.Len(b, v.Rows, 1)
	stands := v.Rows[0]
	require.Equal(b, row.GUID, stands.GUID)
	require.Equal(b, journal.MessageStart, stands.Kind)
	require.Zero(b, stands.Sender, "the close of the parent takes nothing back any more")
	require.GreaterOrEqual(b, stands.NextAt, row.NextAt)
	found, err := b.s.FindJob(b.ctx(), "child-1")
	require.NoError(b, err)
	require.Equal(b, row.Job, found)
	for _, f := range []store.JobFilter{{Parent: order.Parent.Job}, {Parent: order.Parent.Job, States: []journal.JobState{journal.JobOpen}}} {
		got, err := b.s.Jobs(b.ctx(), f)
		page := got.Jobs
		require.NoError(b, err)
		require.Len(b, page, 1)
		require.Equal(b, row.Job, page[0].ID)
		counts, looked, err := b.s.CountJobs(b.ctx(), f)
		require.NoError(b, err)
		require.Equal(b, map[journal.JobState]int64{journal.JobOpen: 1}, counts)
		require.EqualValues(b, 1, looked)
	}
	_, err = b.s.Order(b.ctx(), row.Job)
	require.ErrorIs(b, err, store.ErrNotFound)
	created := b.chain(row.Job, journal.MainChain)[0]
	require.Equal(b, &order.Parent, created.Parent)
	require.JSONEq(b, `{"n":3}`, string(created.Input))
	l, err := c.Load(b.ctx(), []store.Want{{Job: row.Job}}, true)
	require.NoError(b, err)
	require.NoError(b, c.Rollback(b.ctx()))
	require.Equal(b, v.JobSummary.Job, l.States[row.Job].Job, "the parent is part of what is loaded")
	b.audit(id, row.Job)
}

func childOnce(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	for n, awaited := range []bool{true, false} {
		row := b.order(c, id, n, awaited)
		require.NoError(b, b.spawn(&row, nil))
		before := b.view(row.Job)
		require.ErrorIs(b, b.spawn(&row, b.reply(&row, 404)), store.ErrStale)
		require.ErrorIs(b, b.s.Refuse(b.ctx(), &row, b.reply(&row, 404)), store.ErrStale)
		require.Equal(b, before, b.view(row.Job))
		b.audit(row.Job)
	}
	require.Len(b, b.view(id).Rows, 1, "no reply")
	unknown := b.order(c, id, 5, true)
	unknown.Job, unknown.GUID = journal.JobID{1}, journal.GUID{1}
	require.ErrorIs(b, b.spawn(&unknown, nil), store.ErrStale)
	b.audit(id)
}

func childRace(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	f := b.deploy(one)
	for n := range 5 {
		row := b.order(c, id, n, n%2 == 0)
		st, reply := b.spawning(f, &row), b.reply(&row, 200)
		errs := make([]error, 6)
		together(len(errs), func(i int) { errs[i] = b.s.Spawn(b.ctx(), &row, st, reply, b.mode) })
		begun := 0
		for _, err := range errs {
			if err == nil {
				begun++
				continue
			}
			require.ErrorIs(b, err, store.ErrStale)
		}
		require.Equal(b, 1, begun)
		require.Len(b, b.view(id).Rows, n+2, "one reply each, and the job's own start")
		b.audit(row.Job)
	}
	b.audit(id)
}

func childCancel(b *bench) {
	c := b.committer()
	ids := b.jobs(2)
	mine, begun, unawaited := b.order(c, ids[0], 1, true), b.order(c, ids[0], 2, true), b.order(c, ids[0], 3, false)
	require.NoError(b, b.spawn(&begun, nil))
	before := b.view(ids[0])
	for _, k := range []collation.RowKey{keyOf(&begun), keyOf(&unawaited), {Job: journal.JobID{1}, GUID: guid(1)}} {
		require.ErrorIs(b, b.alter(c, ids[0], all(cancelsStart(keyOf(&mine)), cancelsStart(k))), store.ErrLost)
	}
	require.ErrorIs(b, b.alter(c, ids[1], cancelsStart(keyOf(&mine))), store.ErrLost, "the start of another's child")
	require.Equal(b, before, b.view(ids[0]), "nothing is written")
	b.altered(c, ids[0], cancelsStart(keyOf(&mine)))
	require.Nil(b, b.stored(c, ids[0], keyOf(&mine)))
	require.ErrorIs(b, b.spawn(&mine, nil), store.ErrStale)
	_, err := b.s.Order(b.ctx(), mine.Job)
	require.ErrorIs(b, err, store.ErrNotFound)
	_, err = b.s.Job(b.ctx(), mine.Job)
	require.ErrorIs(b, err, store.ErrNotFound)
	b.audit(ids[0], ids[1], begun.Job)
}

// contest lets a parent cancel a start while another transaction handles it.
func (b *bench) contest(against func(row *collation.Row) error) {
	c := b.committer()
	id := b.jobs(1)[0]
	for n := range 20 {
		row := b.order(c, id, n, true)
		var took, handled error
		together(2, func(i int) {
			if i == 0 {
				took = b.alter(c, id, cancelsStart(keyOf(&row)))
			} else {
				handled = against(&row)
			}
		})
		if took == nil {
			require.ErrorIs(b, handled, store.ErrStale)
			_, err := b.s.Job(b.ctx(), row.Job)
			require.ErrorIs(b, err, store.ErrNotFound)
			continue
		}
		require.ErrorIs(b, took, store.ErrLost)
		require.NoError(b, handled)
	}
	b.audit(id)
}

func childCancelRace(b *bench) {
	f := b.deploy(one)
	b.contest(func(row *collation.Row) error { return b.s.Spawn(b.ctx(), row, b.spawning(f, row), nil, b.mode) })
}

func childAllRows(b *bench) {
	c := b.committer()
	ids := b.jobs(2)
	mine, begun := b.order(c, ids[0], 1, true), b.order(c, ids[0], 2, true)
	_, _ = b.order(c, ids[0], 3, false), b.order(c, ids[1], 4, true)
	require.NoError(b, b.spawn(&begun, nil))
	key := collation.InstanceKey{Activity: "work", DAD: ",0,0"}
	more := collation.More{Leg1: guid(2), Turn: 1, Attempt: 1, Child: begun.Job}
	b.altered(c, ids[0], all(
		ledgers(collation.LedgerWrite{Key: key, New: true, After: 1_100_000_000_000, More: more}),
		ledgers(collation.LedgerWrite{Key: collation.InstanceKey{Activity: "work", DAD: ",0,1"}, New: true, After: 1_100_000_000_000}),
	))
	st := b.more(c, ids[0], collation.Need{AllRows: true})
	require.Equal(b, map[journal.GUID]*collation.Row{mine.GUID: &mine, ids[0].Start(): st.Rows[ids[0].Start()]}, st.Rows)
	require.NotNil(b, st.Rows[ids[0].Start()])
	require.Equal(b, map[collation.InstanceKey]*collation.Instance{key: {Ledger: 1_100_000_000_000, More: more}}, st.Instances)
	require.ElementsMatch(b, []collation.Row{mine, *st.Rows[ids[0].Start()]}, b.view(ids[0]).Rows)
	b.audit(ids...)
}

func (b *bench) discard(keys ...collation.RowKey) {
	b.Helper()
	require.NoError(b, b.s.Discard(b.ctx(), keys))
}

// interruptOf returns the row of an interrupt of a job.
func (b *bench) interruptOf(target journal.JobID, caller string) collation.Row {
	b.Helper()
	o := collation.InterruptOrder{Code: collation.CodeInterrupted, Reason: "enough", Throw: true, From: caller}
	row, err := o.Row(collation.AskedInterruptGUID(caller, target), target, 1)
	require.NoError(b, err)
	return row
}

func childDiscard(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	row := b.order(c, id, 1, true)
	late := b.interruptOf(row.Job, "x")
	b.altered(c, id, inserts(late))
	b.discard(keyOf(&late))
	require.NotNil(b, b.stored(c, id, keyOf(&late)), "its job may begin yet")
	b.altered(c, id, cancelsStart(keyOf(&row)))
	b.discard(keyOf(&late), keyOf(&row), keyOf(&late))
	require.Nil(b, b.stored(c, id, keyOf(&late)))
	b.discard(keyOf(&late))
	b.discard()
	k := b.sent(c, id, b.signal("t", "k", "x"))
	b.discard(k)
	require.Nil(b, b.stored(c, id, k), "a signal is addressed to no job: who gives it up can end it (C10)")
	b.audit(id)
}
