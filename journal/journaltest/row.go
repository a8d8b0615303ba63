package journaltest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// hour is a time that does not pass within a subtest.
const hour = time.Hour

var rows = map[string]func(*bench){
	"due, oldest first, within the limit (T2)":                         rowDue,
	"a claim is a test-and-set on publication and turn (T2)":           rowClaim,
	"a claim that looks again later sends nothing (T2)":                rowLater,
	"the next row that is due, or request that is late, is told (W9)":  rowNext,
	"sweepers at once send each row once (T8)":                         rowSweepers,
	"a row that has gone is not claimed":                               rowGone,
	"a held row is not due (C16)":                                      rowHeld,
	"a row is due when its time comes, by the store's clock":           rowTime,
	"what is past its time is late, the first first, held or not (E9)": rowLate,
	"a claimed row carries what publishing needs (T2)":                 rowOutgoing,
	"a turned request gives neither lease nor effect (T1)":             rowTurned,
	"a row keeps what the engine writes of it, field by field":         rowFields,
}

func claims(due []store.DueRow, send bool) []store.Claim {
	var out []store.Claim
	for _, d := range due {
		out = append(out, store.Claim{Row: d, Send: send, Again: hour})
	}
	return out
}

func (b *bench) due(limit int) []store.DueRow {
	b.Helper()
	due, _, err := b.s.Due(b.ctx(), limit)
	require.NoError(b, err)
	return due
}

func rowDue(b *bench) {
	due, timing, err := b.s.Due(b.ctx(), 10)
	require.NoError(b, err)
	require.Empty(b, due)
	require.Zero(b, timing, "nothing will be")
	f := b.deploy(one)
	var ids []journal.JobID
	for i := range 12 {
		ids = append(ids, b.start(f, fmt.Sprint(i)))
	}
	due, _, err = b.s.Due(b.ctx(), 5)
	require.NoError(b, err)
	require.Len(b, due, 5)
	due = b.due(100)
	require.Len(b, due, 12)
	at := collation.Micros(0)
	for _, d := range due {
		row := b.view(d.Job).Rows[0]
		require.GreaterOrEqual(b, row.NextAt, at, "oldest first")
		at = row.NextAt
		require.Contains(b, ids, d.Job)
		require.Equal(b, row.GUID, d.GUID)
		require.Equal(b, journal.MessageStart, d.Kind)
		require.Zero(b, d.Publication)
		require.Zero(b, d.PublishedAt)
		require.GreaterOrEqual(b, d.Now, row.NextAt)
	}
	require.Equal(b, due[:5], withNow(b.due(5), due), "listing changes nothing")
}

// withNow copies the time at which others were listed into rows.
func withNow(rows, others []store.DueRow) []store.DueRow {
	for i := range rows {
		rows[i].Now = others[i].Now
	}
	return rows
}

func rowClaim(b *bench) {
	id := b.start(b.deploy(one), "k")
	due := b.due(10)
	for _, wrong := range []func(*store.DueRow){
		func(d *store.DueRow) { d.Publication++ },
		func(d *store.DueRow) { d.Turn++ },
		func(d *store.DueRow) { d.GUID[0] ^= 1 },
		func(d *store.DueRow) { d.Job[0] ^= 1 },
	} {
		row := due[0]
		wrong(&row)
		out := got(b.s.Claim(b.ctx(), claims([]store.DueRow{row}, true)))(b)
		require.Empty(b, out)
	}
	out := got(b.s.Claim(b.ctx(), claims(due, true)))(b)
	require.Len(b, out, 1)
	row := b.view(id).Rows[0]
	require.Equal(b, row, out[0].Row)
	require.Equal(b, 1, row.Publication)
	require.Equal(b, row.Turn, row.TurnSent)
	require.GreaterOrEqual(b, row.PublishedAt, due[0].Now)
	require.Equal(b, row.PublishedAt+micros(hour), row.NextAt)
	out = got(b.s.Claim(b.ctx(), claims(due, true)))(b)
	require.Empty(b, out, "the second one has lost")
	require.Empty(b, b.due(10))
}

func rowLater(b *bench) {
	id := b.start(b.deploy(one), "k")
	due := b.due(10)
	before := b.view(id).Rows[0]
	out := got(b.s.Claim(b.ctx(), claims(due, false)))(b)
	require.Empty(b, out)
	after := b.view(id).Rows[0]
	require.GreaterOrEqual(b, after.NextAt, due[0].Now+micros(hour))
	require.Equal(b, before.Rev+1, after.Rev)
	after.NextAt, after.Rev = before.NextAt, before.Rev
	require.Equal(b, before, after)
	require.Empty(b, b.due(10))
	out = got(b.s.Claim(b.ctx(), claims(due, true)))(b)
	require.Empty(b, out, "it is not due any more")
}

func rowSweepers(b *bench) {
	f := b.deploy(one)
	const jobs = 60
	var list []store.Start
	for i := range jobs {
		list = append(list, starting(f, fmt.Sprint(i), `{}`))
	}
	got(b.s.Start(b.ctx(), list, b.mode))(b)
	var mu sync.Mutex
	sent := map[journal.GUID]int{}
	together(4, func(n int) {
		for {
			due, _, err := b.s.Due(b.ctx(), 7+n)
			b.check(err)
			if err != nil || len(due) == 0 {
				return
			}
			out, err := b.s.Claim(b.ctx(), claims(due, true))
			if err != nil {
				b.Errorf("claim: %v", err)
				return
			}
			mu.Lock()
			for _, o := range out {
				sent[o.Row.GUID]++
			}
			mu.Unlock()
		}
	})
	require.Len(b, sent, jobs)
	for g, n := range sent {
		require.Equal(b, 1, n, "row %s", g)
	}
}

func rowGone(b *bench) {
	id := b.start(b.deploy(one), "k")
	due := b.due(10)
	b.must(message(&b.view(id).Rows[0]))
	out := got(b.s.Claim(b.ctx(), claims(due, true)))(b)
	require.Empty(b, out)
}

func rowHeld(b *bench) {
	id := b.start(b.deploy(one), "k")
	due := b.due(10)
	require.Len(b, due, 1)
	b.rewrite(id, b.view(id).Rows[0], func(r *collation.Row, _ collation.Micros) { r.Held = "for a test" })
	require.Empty(b, b.due(10))
	out := got(b.s.Claim(b.ctx(), claims(due, true)))(b)
	require.Empty(b, out, "held since it was listed")
	b.rewrite(id, b.view(id).Rows[0], func(r *collation.Row, _ collation.Micros) { r.Held = "" })
	require.Len(b, b.due(10), 1)
}

func rowTime(b *bench) {
	f := b.deploy(one)
	soon, later := b.start(f, "soon"), b.start(f, "later")
	b.rewrite(later, b.view(later).Rows[0], func(r *collation.Row, now collation.Micros) { r.NextAt = now + micros(24*hour) })
	b.rewrite(soon, b.view(soon).Rows[0], func(r *collation.Row, now collation.Micros) { r.NextAt = now + micros(b.span()) })
	at := b.view(soon).Rows[0].NextAt
	b.eventually(func() bool {
		due := b.due(10)
		if len(due) == 0 {
			return false
		}
		require.Len(b, due, 1)
		require.Equal(b, soon, due[0].Job)
		require.GreaterOrEqual(b, due[0].Now, at, "never before its time (J5)")
		return true
	})
}

// overdue waits until n requests are ended as overdue.
func (b *bench) overdue(n int) {
	b.Helper()
	turned := 0
	b.eventually(func() bool {
		k := got(b.s.TurnOverdue(b.ctx(), 10))(b)
		turned += k
		return turned >= n
	})
	require.Equal(b, n, turned)
	again := got(b.s.TurnOverdue(b.ctx(), 10))(b)
	require.Zero(b, again)
}

// rowLate lists requests that are past their time, including held ones; collation decides them.
func rowLate(b *bench) {
	f := b.deploy(hasty)
	b.requested(one, "patient")
	var want []collation.RowKey
	for i := range 3 {
		id := b.start(f, fmt.Sprint(i))
		b.run(id)
		if i == 1 {
			b.answer(id, "work", failure(journal.ResponseParked, "unknown outcome"))
		}
		r := b.request(id, "work")
		want = append(want, keyOf(&r))
	}
	late := func(limit int) []collation.RowKey {
		out := got(b.s.Late(b.ctx(), limit))(b)
		return out
	}
	b.eventually(func() bool { return len(late(10)) == len(want) })
	within := func(k collation.RowKey) collation.Micros {
		return b.request(k.Job, "work").WithinAt
	}
	all := late(10)
	require.ElementsMatch(b, want, all)
	require.True(b, slices.IsSortedFunc(all, func(x, y collation.RowKey) int { return cmp.Compare(within(x), within(y)) }))
	require.Len(b, late(2), 2)
	b.overdue(3)
	for _, k := range want {
		b.run(k.Job)
		require.Equal(b, collation.CodeTimeout, b.view(k.Job).Code)
	}
	require.Empty(b, b.letters(false), "the answer ends the letter, too (E10)")
}

func rowOutgoing(b *bench) {
	id := b.requested(one, "order-7")
	b.rewrite(id, b.request(id, "work"), func(r *collation.Row, now collation.Micros) { r.NextAt = now })
	out := got(b.s.Claim(b.ctx(), claims(b.due(10), true)))(b)
	require.Len(b, out, 1)
	v := b.view(id)
	require.Equal(b, store.Outgoing{Row: v.Rows[0], JobKey: "order-7", Generation: 1, Flow: v.Flow, Trace: v.Trace}, out[0])
	require.JSONEq(b, `{"n":7}`, string(out[0].Row.Body))
	require.Equal(b, "t.work", out[0].Row.Topic)
	require.Equal(b, 2, out[0].Row.Publication)
}

func rowTurned(b *bench) {
	id := b.requested(hasty, "k")
	r := b.request(id, "work")
	l := b.lease(r, "w")
	b.overdue(1)
	_, err := b.s.Lease(b.ctx(), id, r.GUID, 1, "w", l.Session)
	require.ErrorIs(b, err, store.ErrStale)
	_, err = b.s.Keep(b.ctx(), l)
	require.ErrorIs(b, err, store.ErrStale)
	_, _, err = b.s.StartEffect(b.ctx(), l, effect("pay", 0))
	require.ErrorIs(b, err, store.ErrStale)
	_, err = b.s.Input(b.ctx(), id, r.GUID)
	requireOneOf(b, err, store.ErrStale, store.ErrNotFound)
}

// rowFields writes every field of a row and reads it back.
func rowFields(b *bench) {
	b.odd = true
	id := b.requested(one, "k")
	r := b.request(id, "work")
	var want collation.Row
	b.rewrite(id, r, func(r *collation.Row, now collation.Micros) {
		r.Topic, r.Element, r.Body = "t.other", 3, []byte(`{"é":1}`)
		r.NextAt, r.Held, r.Dead = now+5, "why", true
		r.Publication, r.PublishedAt, r.Turn, r.TurnSent, r.Attempt, r.Runs = 4, now-3, 5, 4, 2, 6
		r.Holder, r.Session, r.Fence, r.WithinAt = "w", 7, 8, now+9
		r.Pauses, r.Undo, r.Input = everyPause(), true, []byte(`{"è":2}`)
		want = *r
	})
	require.Equal(b, want, b.request(id, "work"))
	b.rewrite(id, want, func(r *collation.Row, _ collation.Micros) {
		r.NextAt, r.Held, r.Dead, r.Holder, r.Session = collation.Never, "", false, "", 0
		r.WithinAt, r.PublishedAt = collation.Never, 0
		r.Pauses, r.Undo, r.Input = nil, false, nil
		want = *r
	})
	require.Equal(b, want, b.request(id, "work"))
}

func rowNext(b *bench) {
	next := func() time.Duration {
		_, t, err := b.s.Due(b.ctx(), 10)
		require.NoError(b, err)
		return t.Next
	}
	rewrite := func(id journal.JobID, change func(r *collation.Row, now collation.Micros)) {
		b.rewrite(id, b.view(id).Rows[0], change)
	}
	id := b.start(b.deploy(one), "k")
	require.Zero(b, next(), "it is due, and no other")
	rewrite(id, func(r *collation.Row, now collation.Micros) { r.NextAt = now + micros(hour) })
	require.InDelta(b, hour, next(), float64(time.Minute))
	rewrite(id, func(r *collation.Row, now collation.Micros) { r.WithinAt = now + micros(hour/2) })
	require.InDelta(b, hour/2, next(), float64(time.Minute))
	rewrite(id, func(r *collation.Row, now collation.Micros) {
		r.WithinAt, r.Held = collation.Never, collation.HeldParallel
	})
	require.Zero(b, next(), "it is held")

	late := func() bool {
		_, t, err := b.s.Due(b.ctx(), 10)
		require.NoError(b, err)
		return t.Late
	}
	id = b.requested(fork, "late")
	require.False(b, late())
	b.rewrite(id, b.request(id, "right"), func(r *collation.Row, now collation.Micros) { r.WithinAt = now - 1 })
	require.True(b, late())
}
