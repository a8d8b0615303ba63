package journaltest

import (
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

func extraRows(b *bench) {
	ids := b.jobs(2)
	child := b.order(ids[1], 1, true)
	k := b.sent(ids[1], b.signal("t", "k", "x"))
	other := collation.RowKey{Job: ids[1], GUID: ids[1].Start()}
	st := b.more(ids[0], collation.Need{Rows: []collation.RowKey{
		keyOf(&child), k, other, {Job: ids[0], GUID: ids[0].Start()}, {Job: ids[0], GUID: guid(9)},
	}})
	require.Len(b, st.Rows, 5)
	require.Equal(b, &child, st.Rows[child.GUID])
	require.Equal(b, journal.MessageSignal, st.Rows[k.GUID].Kind)
	require.Equal(b, ids[1], st.Rows[other.GUID].Job)
	require.Equal(b, ids[0], st.Rows[ids[0].Start()].Job)
	require.Nil(b, st.Rows[guid(9)])
	require.False(b, st.AllRows)
}

// extraStays asks for state that an earlier plan of the same transaction has changed.
func extraStays(b *bench) {
	id := b.jobs(1)[0]
	b.altered(id, all(
		waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}), waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "l"}),
		ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: fullMore}), opens(3),
	))
	l := b.locked(b.c, store.Want{Job: id})
	st := l.States[id]
	need := map[journal.JobID]*collation.Need{id: {
		Instances: []collation.InstanceKey{workKey}, Results: []collation.InstanceKey{workKey},
		Waits: []journal.GUID{guid(1)}, Rows: []collation.RowKey{{Job: id, GUID: id.Start()}, {Job: id, GUID: guid(7)}},
		Latest: []string{"work"}, AllRows: true,
	}}
	require.NoError(b, b.c.More(b.ctx(), map[journal.JobID]*collation.Need{id: {
		Instances: need[id].Instances, Waits: need[id].Waits, Rows: need[id].Rows, Latest: need[id].Latest,
	}}))
	moved := fullMore
	moved.Open--
	st.Instances[workKey] = &collation.Instance{Ledger: 201_100_000_000_000, More: moved}
	st.Results[workKey] = &flow.Result{Ran: true, Code: 201}
	st.Latest["work"] = st.Results[workKey]
	st.Waits[guid(1)] = nil
	st.Rows[id.Start()] = nil
	st.Rows[guid(7)] = &collation.Row{GUID: guid(7), Job: id}
	require.NoError(b, b.c.More(b.ctx(), need))
	require.NoError(b, b.c.Rollback(b.ctx()))
	require.Equal(b, "201100000000000", st.Instances[workKey].Ledger.String())
	require.Equal(b, 2, st.Instances[workKey].Open)
	require.Equal(b, 201, st.Results[workKey].Code)
	require.Equal(b, 201, st.Latest["work"].Code)
	require.Nil(b, st.Waits[guid(1)])
	require.NotNil(b, st.Waits[guid(2)])
	require.Nil(b, st.Rows[id.Start()])
	require.NotNil(b, st.Rows[guid(7)])
}

func extraExpires(b *bench) {
	kept := b.finished("kept", collation.Never)
	require.Equal(b, collation.Never, b.view(kept).ExpiresAt)
	at := b.now() + micros(hour)
	expires := b.finished("expires", at)
	require.Equal(b, at, b.view(expires).ExpiresAt)
}

// extraBatch moves an instance twice, and an output pointer, in one transaction.
func extraBatch(b *bench) {
	id := b.jobs(1)[0]
	pass := collation.InstanceKey{Activity: "work", DAD: ",0,3"}
	l := b.locked(b.c, store.Want{Job: id})
	st := l.States[id]
	var plans []store.Chained
	for _, add := range []change{
		all(ledgers(collation.LedgerWrite{Key: workKey, New: true, Join: true, After: 10_200_000_000}), results(pass, true, `1`)),
		ledgers(collation.LedgerWrite{Key: workKey, Join: true, Before: 10_200_000_000, After: 1_010_200_000_000, More: fullMore}),
		all(
			ledgers(collation.LedgerWrite{
				Key: workKey, Join: true, Before: 1_010_200_000_000, After: 1_010_200_000_000, More: collation.More{Leg1: guid(3), Turn: 7},
			}),
			results(pass, false, `2`),
		),
	} {
		p := handmade(st, &collation.Message{Job: id})
		add(p, st)
		plans = append(plans, store.Chain(&st.Job, p))
		st.Apply(p)
	}
	require.NoError(b, b.c.Commit(b.ctx(), plans))
	require.Equal(b, &collation.Instance{
		Ledger: 1_010_200_000_000, More: collation.More{Leg1: guid(3), Turn: 7},
	}, b.instance(id, workKey))
	require.Equal(b, `2`, string(b.more(id, collation.Need{Results: []collation.InstanceKey{pass}}).Results[pass].Output))
}

// extraLost loses an own row when everything else of a plan was right.
func extraLost(b *bench) {
	ids := b.jobs(2)
	child := b.order(ids[0], 1, true)
	b.altered(ids[0], waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	kept := b.signal("t", "new", "x")
	b.tell(kept)
	before, other := b.view(ids[0]), b.view(ids[1])
	reply := b.reply(&child, 200)
	reply.Job = ids[1]
	err := b.alter(ids[0], all(
		ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: fullMore}),
		inserts(*reply), cancelsStart(keyOf(&child)), cancelsWait(guid(1), 0), waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "new"}),
		func(p *collation.Plan, _ *collation.State) { p.Delete = append(p.Delete, guid(8)) },
	))
	require.ErrorIs(b, err, store.ErrLost)
	require.Equal(b, before, b.view(ids[0]))
	require.Equal(b, other, b.view(ids[1]))
	require.Equal(b, &child, b.stored(ids[0], keyOf(&child)))
	require.Equal(b, collation.HeldKept, b.stored(ids[0], b.box(kept)).Held)
}

// extraElements lets one entry hold the result of an element and that of its list.
func extraElements(b *bench) {
	b.odd = true
	id := b.jobs(1)[0]
	element := collation.InstanceKey{Activity: "work[1]", DAD: workKey.DAD}
	b.altered(id, func(p *collation.Plan, st *collation.State) {
		p.Entry.Kind, p.Entry.Operator = journal.KindLeg2, nil
		p.Entry.Response = &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: []byte(`1`), Element: 1}
		results(element, true, `[0,1]`)(p, st)
		ledgers(collation.LedgerWrite{
			Key: workKey, New: true, After: 1_100_000_000_000, ResultSeq: p.Entry.Seq, Code: collation.CodeOK,
		})(p, st)
	})
	got := b.more(id, collation.Need{Results: []collation.InstanceKey{element, workKey}, Latest: []string{"work"}})
	require.Equal(b, `1`, string(got.Results[element].Output))
	require.Equal(b, `[0,1]`, string(got.Results[workKey].Output))
	require.Equal(b, `[0,1]`, string(got.Latest["work"].Output))
}
