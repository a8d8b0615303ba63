package journaltest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var places = map[string]func(*bench){
	"an effect keeps its position (E15)":                     placePosition,
	"the effects of a job come in the order of their time":   placeJob,
	"a key is found in whichever job (E1)":                   placeKey,
	"a tombstone has no effects":                             placeExpired,
	"a compensation is registered once, on its row (3.5)":    placeUndo,
	"a registered compensation is in nobody's way (E4)":      placeUndoWay,
	"many calls of one run at once: its chain is whole (J8)": placeOne,
}

// at returns an effect of a class, at a position.
func at(name, class, position string) journal.Effect {
	e := effect(name, 0)
	e.Class, e.Position = class, position
	return e
}

func placePosition(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	require.Equal(b, "2.0.1", b.startEffect(l, at("pay", store.ClassGuarded, "2.0.1")).Position)
	require.Equal(b, "2.0.1", b.finishEffect(l, completed(at("pay", store.ClassGuarded, "2.0.1"), `1`)).Position)
	require.Equal(b, "3", b.finishEffect(l, completed(at("now", store.ClassPure, "3"), `1`)).Position)
	calls := 0
	row := got(b.s.TxEffect(b.ctx(), l, at("rows", store.ClassTx, "4"), ends(&calls, resulting(`1`), nil)))(b)
	require.Equal(b, "4", row.Position)
	list := got(b.s.Effects(b.ctx(), r.Job, r.GUID))(b)
	require.Equal(b, []string{"2.0.1", "3", "4"}, []string{list[0].Position, list[1].Position, list[2].Position})
	var entries []string
	for _, e := range b.chain(r.Job, r.GUID) {
		entries = append(entries, e.Effect.Position)
	}
	require.Equal(b, []string{"2.0.1", "2.0.1", "3", "4"}, entries)
}

func placeJob(b *bench) {
	id := b.requested(fork, "k")
	leases := map[string]store.Lease{}
	for _, activity := range []string{"left", "right"} {
		leases[activity] = b.lease(b.request(id, activity), "w")
	}
	order := []string{"right", "left", "right", "left"}
	var last journal.Entry
	for i, activity := range order {
		e := effect(fmt.Sprint(i), 0)
		b.eventuallyLater(&last, func() *journal.Entry {
			b.startEffect(leases[activity], e)
			chain := b.chain(id, leases[activity].Request)
			return chain[len(chain)-1]
		})
	}
	b.finishEffect(leases["left"], completed(effect("1", 0), `1`))
	b.answer(id, "right", success(`1`))
	list := got(b.s.JobEffects(b.ctx(), id))(b)
	require.Len(b, list, len(order))
	for i, f := range list {
		require.Equal(b, fmt.Sprint(i), f.Name)
		require.Equal(b, []any{id, leases[order[i]].Request, order[i]}, []any{f.Job, f.Request, f.Activity})
		require.NotEmpty(b, f.DAD)
	}
	require.Equal(b, []bool{false, false, false, true}, []bool{list[0].Live, list[1].Live, list[2].Live, list[3].Live})
	require.Equal(b, `1`, string(list[1].Result))
	none := got(b.s.JobEffects(b.ctx(), journal.JobID{1}))(b)
	require.Empty(b, none)
}

// eventuallyLater writes entries until one has a later time than last.
func (b *bench) eventuallyLater(last *journal.Entry, write func() *journal.Entry) {
	b.Helper()
	if clock, ok := b.s.Store.(Clock); ok {
		clock.Advance(time.Millisecond)
	}
	e := write()
	require.Greater(b, e.Time, last.Time)
	*last = *e
}

func placeKey(b *bench) {
	var rows []collation.Row
	for _, key := range []string{"k", "l"} {
		rows = append(rows, b.request(b.requested(one, key), "work"))
	}
	slices.SortFunc(rows, func(x, y collation.Row) int { return slices.Compare(y.Job[:], x.Job[:]) })
	for i, r := range rows {
		if clock, ok := b.s.Store.(Clock); ok {
			clock.Advance(time.Millisecond)
		}
		l := b.lease(r, "w")
		b.startEffect(l, effect("of both", 0))
		b.startEffect(l, effect(fmt.Sprint(i), 0))
	}
	for i, r := range rows {
		found := got(b.s.FindEffect(b.ctx(), effect(fmt.Sprint(i), 0).Key))(b)
		require.Len(b, found, 1)
		require.Equal(b, []any{r.Job, r.GUID, "work", string(r.DAD)}, []any{found[0].Job, found[0].Request, found[0].Activity, found[0].DAD})
		require.True(b, found[0].Live)
	}
	both := got(b.s.FindEffect(b.ctx(), effect("of both", 0).Key))(b)
	require.Len(b, both, 2)
	require.Negative(b, slices.Compare(both[0].Job[:], both[1].Job[:]), "in the order of their ids, which is not that of their time")
	none := got(b.s.FindEffect(b.ctx(), effect("of none", 0).Key))(b)
	require.Empty(b, none)
}

func placeExpired(b *bench) {
	r := b.asked()
	l := b.lease(r, "w")
	b.startEffect(l, effect("pay", 0))
	b.finishEffect(l, completed(effect("pay", 0), `1`))
	b.finish(r.Job, b.now())
	got(b.s.Expire(b.ctx(), 1))(b)
	require.Equal(b, journal.JobExpired, b.view(r.Job).State)
	list := got(b.s.JobEffects(b.ctx(), r.Job))(b)
	require.Empty(b, list)
	list = got(b.s.FindEffect(b.ctx(), effect("pay", 0).Key))(b)
	require.Empty(b, list)
	rows := got(b.s.Effects(b.ctx(), r.Job, r.GUID))(b)
	require.Empty(b, rows)
}

var undone = at("refund", store.ClassUndo, "5")

func placeUndo(b *bench) {
	r := b.asked()
	require.False(b, r.Undo)
	l := b.lease(r, "w1")
	b.startEffect(l, effect("pay", 0))
	require.False(b, b.request(r.Job, "work").Undo)
	row := b.startEffect(l, undone)
	require.Equal(b, []any{store.EffectStarted, store.ClassUndo, "5"}, []any{row.State, row.Class, row.Position})
	after := b.request(r.Job, "work")
	require.True(b, after.Undo)
	require.Equal(b, row, b.startEffect(l, undone))
	require.Len(b, b.chain(r.Job, r.GUID), 2)
	b.finishEffect(l, completed(effect("pay", 0), `1`))
	require.True(b, b.request(r.Job, "work").Undo)
}

func placeUndoWay(b *bench) {
	r := b.asked()
	l := b.leaseFor(r, "w1", b.session("dies", b.span()))
	l.Timeout = hour
	first := b.startEffect(l, undone)
	b.letDie("dies")
	next := b.lease(r, "w2") // the timeout of an attempt is only about calls outside
	row := b.startEffect(next, undone)
	require.Equal(b, []any{first.Fence, "w1", store.EffectStarted, false}, []any{row.Fence, row.Holder, row.State, row.Live}, "it is not taken over")
	require.Len(b, b.chain(r.Job, r.GUID), 1)
	parked := failure(journal.ResponseParked, "unknown outcome")
	parked.Error.Class = collation.ClassParked
	b.answer(r.Job, "work", parked)
	require.Empty(b, b.request(r.Job, "work").Held, "nothing outside is unfinished (E4)")
}

func placeOne(b *bench) {
	r := b.asked()
	l := b.lease(r, "w")
	const n = 24
	together(n, func(i int) {
		e := effect("pay", i/2) // each twice
		_, _, err := b.s.StartEffect(b.ctx(), l, e)
		if err == nil {
			_, err = b.s.FinishEffect(b.ctx(), l, completed(e, fmt.Sprint(i/2)), false)
		}
		b.check(err)
	})
	list := got(b.s.Effects(b.ctx(), r.Job, r.GUID))(b)
	require.Len(b, list, n/2)
	require.Len(b, b.chain(r.Job, r.GUID), n, "each starts and ends once")
	for _, f := range list {
		require.Equal(b, fmt.Sprint(f.N), string(f.Result))
	}
}
