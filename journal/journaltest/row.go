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

var rows = cases{
	"due, oldest first, within the limit (T2)":                         rowDue,
	"a claim is a test-and-set on publication and turn (T2)":           rowClaim,
	"a claim that looks again later sends nothing (T2)":                rowLater,
	"what is gone or held is not claimed (C16)":                        rowHeld,
	"rows without a job are due and claimed like others (T1)":          rowOfNoJob,
	"the next row that is due, or request that is late, is told (W9)":  rowNext,
	"sweepers at once send each row once (T8)":                         rowSweepers,
	"a row is due when its time comes, by the store's clock":           rowTime,
	"what is past its time is late, the first first, held or not (E9)": rowLate,
	"a row keeps what the engine writes of it, field by field":         rowFields,
	"more than the limits is refused (T11)":                            rowLimits,
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
	ids := b.jobs(12)
	require.Len(b, b.due(5), 5)
	due = b.due(100)
	require.Len(b, due, 12)
	at := collation.Micros(0)
	for _, d := range due {
		require.Contains(b, ids, d.Job)
		row := b.view(d.Job).Rows[0]
		require.GreaterOrEqual(b, row.NextAt, at, "oldest first")
		at = row.NextAt
		require.GreaterOrEqual(b, d.Now, at)
		require.Equal(b, store.DueRow{Job: d.Job, GUID: row.GUID, Kind: journal.MessageStart, Now: d.Now}, d)
	}
	again := b.due(5)
	for i := range again {
		again[i].Now = due[i].Now
	}
	require.Equal(b, due[:5], again, "listing changes nothing")
}

// rowClaim sends the request of a job that was sent before.
func rowClaim(b *bench) {
	r := b.asked()
	b.rewrite(r, func(r *collation.Row, now collation.Micros) { r.NextAt = now })
	due := b.due(10)
	for _, wrong := range []func(*store.DueRow){
		func(d *store.DueRow) { d.Publication++ },
		func(d *store.DueRow) { d.Turn++ },
		func(d *store.DueRow) { d.GUID[0] ^= 1 },
		func(d *store.DueRow) { d.Job[0] ^= 1 },
	} {
		row := due[0]
		wrong(&row)
		require.Empty(b, got(b.s.Claim(b.ctx(), claims([]store.DueRow{row}, true)))(b))
	}
	out := got(b.s.Claim(b.ctx(), claims(due, true)))(b)
	v, row := b.view(r.Job), b.request(r.Job, "work")
	require.Equal(b, []store.Outgoing{{Row: row, JobKey: "k", Generation: 1, Flow: v.Flow, Trace: v.Trace}}, out)
	require.Equal(b, []any{2, row.Turn, row.PublishedAt + micros(hour)}, []any{row.Publication, row.TurnSent, row.NextAt})
	require.GreaterOrEqual(b, row.PublishedAt, due[0].Now)
	require.Empty(b, got(b.s.Claim(b.ctx(), claims(due, true)))(b), "the second one has lost")
	require.Empty(b, b.due(10))
}

func rowLater(b *bench) {
	id := b.jobs(1)[0]
	due := b.due(10)
	before := b.view(id).Rows[0]
	require.Empty(b, got(b.s.Claim(b.ctx(), claims(due, false)))(b))
	after := b.view(id).Rows[0]
	require.GreaterOrEqual(b, after.NextAt, due[0].Now+micros(hour))
	before.NextAt, before.Rev = after.NextAt, before.Rev+1
	require.Equal(b, before, after)
	require.Empty(b, b.due(10))
	require.Empty(b, got(b.s.Claim(b.ctx(), claims(due, true)))(b), "it is not due any more")
}

func rowHeld(b *bench) {
	id := b.jobs(1)[0]
	due := b.due(10)
	b.rewrite(b.view(id).Rows[0], func(r *collation.Row, _ collation.Micros) { r.Held = "for a test" })
	require.Empty(b, b.due(10))
	require.Empty(b, got(b.s.Claim(b.ctx(), claims(due, true)))(b), "held since it was listed")
	b.rewrite(b.view(id).Rows[0], func(r *collation.Row, _ collation.Micros) { r.Held = "" })
	require.Len(b, b.due(10), 1)
	b.must(Message(&b.view(id).Rows[0]))
	require.Empty(b, got(b.s.Claim(b.ctx(), claims(due, true)))(b), "gone since it was listed")
}

func rowOfNoJob(b *bench) {
	id := b.jobs(1)[0]
	child, k := b.order(id, 1, true), b.sent(id, b.signal("t", "k", "x"))
	due := slices.DeleteFunc(b.due(10), func(d store.DueRow) bool { return d.Job == id })
	out := got(b.s.Claim(b.ctx(), claims(due, true)))(b)
	require.ElementsMatch(b, []store.Outgoing{{Row: *b.stored(id, keyOf(&child))}, {Row: *b.stored(id, k)}}, out)
	require.Equal(b, []int{1, 1}, []int{out[0].Row.Publication, out[1].Row.Publication})
	require.NoError(b, b.spawn(&child, nil), "its publication is part of no test-and-set")
}

func rowSweepers(b *bench) {
	const jobs = 60
	b.jobs(jobs)
	var mu sync.Mutex
	sent := map[journal.GUID]int{}
	together(4, func(n int) {
		for {
			due, _, err := b.s.Due(b.ctx(), 7+n)
			if b.check(err); len(due) == 0 {
				return
			}
			out, err := b.s.Claim(b.ctx(), claims(due, true))
			b.check(err)
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

func rowTime(b *bench) {
	ids := b.jobs(2)
	b.rewrite(b.view(ids[0]).Rows[0], func(r *collation.Row, now collation.Micros) { r.NextAt = now + micros(24*hour) })
	b.rewrite(b.view(ids[1]).Rows[0], func(r *collation.Row, now collation.Micros) { r.NextAt = now + micros(b.span()) })
	at := b.view(ids[1]).Rows[0].NextAt
	b.eventually(func() bool {
		due := b.due(10)
		if len(due) == 0 {
			return false
		}
		require.Len(b, due, 1)
		require.Equal(b, ids[1], due[0].Job)
		require.GreaterOrEqual(b, due[0].Now, at, "never before its time (J5)")
		return true
	})
}

// rowLate lists requests that are past their time, including held ones; collation decides them.
func rowLate(b *bench) {
	b.requested(one, "patient")
	var want []collation.RowKey
	for i := range 3 {
		r := b.request(b.requested(hasty, fmt.Sprint(i)), "work")
		if i == 1 {
			b.answer(r.Job, "work", failure(journal.ResponseParked, "unknown outcome"))
		}
		want = append(want, keyOf(&r))
	}
	late := func(limit int) []collation.RowKey { return got(b.s.Late(b.ctx(), limit))(b) }
	b.eventually(func() bool { return len(late(10)) == len(want) })
	within := func(k collation.RowKey) collation.Micros { return b.request(k.Job, "work").WithinAt }
	all := late(10)
	require.ElementsMatch(b, want, all)
	require.True(b, slices.IsSortedFunc(all, func(x, y collation.RowKey) int { return cmp.Compare(within(x), within(y)) }))
	require.Len(b, late(2), 2)
	rev := b.request(want[0].Job, "work").Rev
	require.Equal(b, 3, got(b.s.TurnOverdue(b.ctx(), 10))(b))
	require.Greater(b, b.view(want[0].Job).Rows[0].Rev, rev, "whoever writes a row raises its rev (W6)")
	require.Empty(b, late(10))
	for _, k := range want {
		b.run(k.Job)
	}
	require.Empty(b, b.letters(false), "the answer ends the letter, too (E10)")
}

// rowFields writes every field of a row and reads it back.
func rowFields(b *bench) {
	b.odd = true
	r := b.asked()
	var want collation.Row
	b.rewrite(r, func(r *collation.Row, now collation.Micros) {
		r.Topic, r.Element, r.Body = "t.other", 3, []byte(`{"é":1}`)
		r.NextAt, r.Held, r.Dead = now+5, "why", true
		r.Publication, r.PublishedAt, r.Turn, r.TurnSent, r.Attempt, r.Runs = 4, now-3, 5, 4, 2, 6
		r.Holder, r.Session, r.Fence, r.WithinAt = "w", 7, 8, now+9
		r.Pauses, r.Undo, r.Input = everyPause(), true, []byte(`{"è":2}`)
		want = *r
	})
	require.Equal(b, want, b.request(r.Job, "work"))
	b.rewrite(want, func(r *collation.Row, _ collation.Micros) {
		r.NextAt, r.Held, r.Dead, r.Holder, r.Session = collation.Never, "", false, "", 0
		r.WithinAt, r.PublishedAt = collation.Never, 0
		r.Pauses, r.Undo, r.Input = nil, false, nil
		want = *r
	})
	require.Equal(b, want, b.request(r.Job, "work"))
}

func rowNext(b *bench) {
	timing := func() store.Timing {
		_, t, err := b.s.Due(b.ctx(), 10)
		require.NoError(b, err)
		return t
	}
	row := b.view(b.jobs(1)[0]).Rows[0]
	require.Zero(b, timing().Next, "it is due, and no other")
	for _, step := range []struct {
		change func(r *collation.Row, now collation.Micros)
		want   time.Duration
	}{
		{func(r *collation.Row, now collation.Micros) { r.NextAt = now + micros(hour) }, hour},
		{func(r *collation.Row, now collation.Micros) { r.WithinAt = now + micros(hour/2) }, hour / 2},
		{func(r *collation.Row, _ collation.Micros) {
			r.WithinAt, r.Held = collation.Never, collation.HeldParallel
		}, 0},
	} {
		b.rewrite(row, step.change)
		require.InDelta(b, step.want, timing().Next, float64(time.Minute))
	}
	late := b.request(b.requested(fork, "late"), "right")
	require.False(b, timing().Late)
	b.rewrite(late, func(r *collation.Row, now collation.Micros) { r.WithinAt = now - 1 })
	require.True(b, timing().Late)
}

func (b *bench) discard(keys ...collation.RowKey) {
	b.Helper()
	require.NoError(b, b.s.Discard(b.ctx(), keys))
}

func rowLimits(b *bench) {
	require.NoError(b, b.s.DeadLetter(b.ctx(), collation.DeadLetter{Kind: journal.MessageLeg1, Reason: "foreign"}, nil))
	b.jobs(1)
	for _, limit := range []int{0, -1} { // the default
		require.Len(b, got(b.s.DeadLetters(b.ctx(), store.DeadFilter{Limit: limit}))(b), 1)
		require.Len(b, got(b.s.Jobs(b.ctx(), store.JobFilter{Limit: limit}))(b).Jobs, 1)
	}
	_, letters := b.s.DeadLetters(b.ctx(), store.DeadFilter{Limit: store.MaxPage + 1})
	_, jobs := b.s.Jobs(b.ctx(), store.JobFilter{Limit: store.MaxPage + 1})
	_, _, due := b.s.Due(b.ctx(), store.MaxSweep+1)
	_, claim := b.s.Claim(b.ctx(), make([]store.Claim, store.MaxSweep+1))
	_, late := b.s.Late(b.ctx(), store.MaxSweep+1)
	_, outcomes := b.s.Outcomes(b.ctx(), make([]journal.JobID, store.MaxOutcomes+1))
	for i, err := range []error{letters, jobs, due, claim, late, outcomes} {
		require.ErrorIs(b, err, store.ErrRejected, i)
	}
	require.Empty(b, got(b.s.Claim(b.ctx(), nil))(b))
}
