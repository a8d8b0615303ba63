package journaltest

import (
	"encoding/json"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var children = cases{
	"inception of a child is one transaction (1.11)":   childSpawn,
	"one of many at once begins it (P6)":               childRace,
	"a start is taken back by test-and-set (C15)":      childCancel,
	"the close of a parent finds what it awaits (C15)": childAllRows,
}

// order lets a job order its n-th child, of flow one, and returns the row.
func (b *bench) order(parent journal.JobID, n int, awaited bool) collation.Row {
	b.Helper()
	child := collation.ChildID(guid(n), 1)
	row := collation.Row{GUID: child.Start(), Job: child, Kind: journal.MessageStart, DAD: collation.RootDAD}
	b.altered(parent, func(p *collation.Plan, st *collation.State) {
		body, err := json.Marshal(&collation.StartOrder{
			Flow: "one", Key: fmt.Sprint("child-", n), Input: []byte(`{"n":3}`),
			Parent: journal.Parent{
				Space: b.space(), Job: parent, Activity: "work", DAD: ",0,0", Leg1: guid(n), Turn: 1, Awaited: awaited,
			},
		})
		require.NoError(b, err)
		if row.Body, row.NextAt, row.Origin = body, st.Now, p.Entry.Seq; awaited {
			row.Sender = parent
		}
		inserts(row)(p, st)
	})
	return row
}

// spawning returns what begins the child of an order.
func (b *bench) spawning(row, reply *collation.Row) func() error {
	b.Helper()
	order := got(row.Order())(b)
	f := b.deploy(one)
	if order.Version != "" { // of compensations
		f = b.undoFlow()
	}
	st := starting(f, order.Key, string(order.Input))
	return func() error { return b.s.Spawn(b.ctx(), row, st, reply, b.mode) }
}

func (b *bench) spawn(row, reply *collation.Row) error {
	b.Helper()
	return b.spawning(row, reply)()
}

// reply returns an outcome of the order's child.
func (b *bench) reply(row *collation.Row, code int) *collation.Row {
	b.Helper()
	r := got(row.Order())(b).Refusal(row.Job, code, "class", "why", 1, b.mode)
	return &r
}

func childSpawn(b *bench) {
	id := b.jobs(1)[0]
	row := b.order(id, 1, true)
	require.ErrorIs(b, b.alter(id, inserts(row)), store.ErrLost, "it is ordered once")
	order := got(row.Order())(b)
	require.Equal(b, map[journal.JobID]*collation.Row{row.Job: &row}, b.look(store.Want{Order: row.Job}, store.Want{Order: id}).Orders)
	require.NoError(b, b.spawn(&row, nil))
	v := b.view(row.Job)
	require.Equal(b, []any{journal.JobOpen, int64(1), int64(1), "child-1", &order.Parent}, []any{v.State, v.Semaphore, v.Generation, v.Key, v.Parent})
	require.Len(b, v.Instances, 1)
	want := row
	want.Sender, want.Activity, want.Origin, want.Rev = journal.JobID{}, "start", 1, row.Rev+1
	require.Equal(b, []collation.Row{want}, v.Rows, "the close of the parent takes nothing back any more")
	require.Equal(b, row.Job, got(b.s.FindJob(b.ctx(), "child-1"))(b))
	l := b.look(store.Want{Order: row.Job}, store.Want{Job: row.Job})
	require.Empty(b, l.Orders)
	require.Equal(b, v.Job, l.States[row.Job].Job, "the parent is part of what is loaded")
	require.ErrorIs(b, b.spawn(&row, nil), store.ErrStale)
}

func childRace(b *bench) {
	id := b.jobs(1)[0]
	for n := range 5 {
		row := b.order(id, n, n%2 == 0)
		spawn, errs := b.spawning(&row, b.reply(&row, 200)), make([]error, 6)
		together(len(errs), func(i int) { errs[i] = spawn() })
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
	}
}

func childCancel(b *bench) {
	ids := b.jobs(2)
	mine, begun, unawaited := b.order(ids[0], 1, true), b.order(ids[0], 2, true), b.order(ids[0], 3, false)
	require.NoError(b, b.spawn(&begun, nil))
	before := b.view(ids[0])
	for _, k := range []collation.RowKey{keyOf(&begun), keyOf(&unawaited), {Job: journal.JobID{1}, GUID: guid(1)}} {
		require.ErrorIs(b, b.alter(ids[0], cancelsStart(keyOf(&mine)), cancelsStart(k)), store.ErrLost)
	}
	require.ErrorIs(b, b.alter(ids[1], cancelsStart(keyOf(&mine))), store.ErrLost, "the start of another's child")
	require.Equal(b, before, b.view(ids[0]), "nothing is written")
	b.altered(ids[0], cancelsStart(keyOf(&mine)))
	require.Nil(b, b.stored(ids[0], keyOf(&mine)))
	require.ErrorIs(b, b.spawn(&mine, nil), store.ErrStale)
}

func childAllRows(b *bench) {
	ids := b.jobs(2)
	mine, begun := b.order(ids[0], 1, true), b.order(ids[0], 2, true)
	_, _ = b.order(ids[0], 3, false), b.order(ids[1], 4, true)
	require.NoError(b, b.spawn(&begun, nil))
	more := collation.More{Leg1: guid(2), Turn: 1, Attempt: 1, Child: begun.Job}
	b.altered(ids[0],
		ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: more}),
		ledgers(collation.LedgerWrite{Key: collation.InstanceKey{Activity: "work", DAD: ",0,1"}, New: true, After: 1_100_000_000_000}),
	)
	st := b.more(ids[0], collation.Need{AllRows: true})
	require.Equal(b, map[journal.GUID]*collation.Row{mine.GUID: &mine, ids[0].Start(): st.Rows[ids[0].Start()]}, st.Rows)
	require.NotNil(b, st.Rows[ids[0].Start()])
	require.Equal(b, map[collation.InstanceKey]*collation.Instance{workKey: {Ledger: 1_100_000_000_000, More: more}}, st.Instances)
	require.ElementsMatch(b, []collation.Row{mine, *st.Rows[ids[0].Start()]}, b.view(ids[0]).Rows)
}
