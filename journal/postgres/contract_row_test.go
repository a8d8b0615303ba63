package postgres

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// hour is a time that does not pass within a subtest.
const hour = time.Hour

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

var _ = test("Rows", "due, oldest first, within the limit (T2)", func(b *bench) {
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
})

// It sends the request of a job that was sent before.
var _ = test("Rows", "a claim is a test-and-set on publication and turn (T2)", func(b *bench) {
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
		require.Empty(b, must(b.s.Claim(b.ctx(), claims([]store.DueRow{row}, true)))(b))
	}
	out := must(b.s.Claim(b.ctx(), claims(due, true)))(b)
	v, row := b.view(r.Job), b.request(r.Job, "work")
	require.Equal(b, []store.Outgoing{{Row: row, JobKey: "k", Generation: 1, Flow: v.Flow, Trace: v.Trace}}, out)
	require.Equal(b, []any{2, row.Turn, row.PublishedAt + micros(hour)},
		[]any{row.Publication, row.TurnSent, row.NextAt})
	require.GreaterOrEqual(b, row.PublishedAt, due[0].Now)
	require.Empty(b, must(b.s.Claim(b.ctx(), claims(due, true)))(b), "the second one has lost")
	require.Empty(b, b.due(10))
})

var _ = test("Rows", "a claim that looks again later sends nothing (T2)", func(b *bench) {
	id := b.jobs(1)[0]
	due := b.due(10)
	before := b.view(id).Rows[0]
	require.Empty(b, must(b.s.Claim(b.ctx(), claims(due, false)))(b))
	after := b.view(id).Rows[0]
	require.GreaterOrEqual(b, after.NextAt, due[0].Now+micros(hour))
	before.NextAt, before.Rev = after.NextAt, before.Rev+1
	require.Equal(b, before, after)
	require.Empty(b, b.due(10))
	require.Empty(b, must(b.s.Claim(b.ctx(), claims(due, true)))(b), "it is not due any more")
})

// It asks for the request of a job.
var _ = test("Rows", "what the bus has refused is noted as not sent (T5)", func(b *bench) {
	r := b.asked()
	sent := b.request(r.Job, "work")
	require.Equal(b, sent.Turn, sent.TurnSent)
	require.Empty(b, b.due(10), "it is not due for a while")
	refused := func(change func(*store.DueRow)) {
		row := store.DueRow{Job: sent.Job, GUID: sent.GUID, Publication: sent.Publication, Turn: sent.Turn}
		change(&row)
		require.Empty(b, must(b.s.Claim(b.ctx(), []store.Claim{{Row: row, Refused: true, Again: time.Microsecond}}))(b))
	}
	for _, other := range []func(*store.DueRow){
		func(d *store.DueRow) { d.Publication++ },
		func(d *store.DueRow) { d.Turn++ },
		func(d *store.DueRow) { d.GUID[0] ^= 1 },
	} {
		refused(other)
		require.Equal(b, sent, b.request(r.Job, "work"))
	}
	refused(func(*store.DueRow) {})
	after := b.request(r.Job, "work")
	require.Equal(b, collation.NoTurn, after.TurnSent)
	require.Equal(b, []any{sent.Publication, sent.PublishedAt, sent.Rev + 1},
		[]any{after.Publication, after.PublishedAt, after.Rev})
	b.passing(func() bool { return len(b.due(10)) == 1 })
	out := must(b.s.Claim(b.ctx(), claims(b.due(10), true)))(b)
	require.Equal(b, []int{sent.Publication + 1, sent.Turn}, []int{out[0].Row.Publication, out[0].Row.TurnSent})
	refused(func(d *store.DueRow) { d.Publication++ })
	b.rewrite(r, func(r *collation.Row, _ collation.Micros) { r.Held = "for a test" })
	held := b.request(r.Job, "work")
	refused(func(d *store.DueRow) { d.Publication++ })
	require.Equal(b, held, b.request(r.Job, "work"), "nobody sends it")
})

var _ = test("Rows", "the publications of requests, of many rows at once (T2)", func(b *bench) {
	r := b.asked()
	start := b.jobs(1)[0]
	keys := []collation.RowKey{
		{Job: r.Job, GUID: guid(9)},
		{Job: r.Job, GUID: r.GUID},
		{Job: start, GUID: b.view(start).Rows[0].GUID},
		{Job: start, GUID: r.GUID},
	}
	sent := b.request(r.Job, "work").Publication
	require.Positive(b, sent)
	require.Equal(b, []int{0, sent, 0, 0}, must(b.s.Publications(b.ctx(), keys))(b))
	b.rewrite(r, func(r *collation.Row, _ collation.Micros) { r.Held = "for a test" })
	require.Equal(b, []int{0, 0, 0, 0}, must(b.s.Publications(b.ctx(), keys))(b), "a held one is not sent")
	require.Empty(b, must(b.s.Publications(b.ctx(), nil))(b))
	_, err := b.s.Publications(b.ctx(), make([]collation.RowKey, store.MaxSweep+1))
	require.Error(b, err)
})

var _ = test("Rows", "what is gone or held is not claimed (C16)", func(b *bench) {
	id := b.jobs(1)[0]
	due := b.due(10)
	b.rewrite(b.view(id).Rows[0], func(r *collation.Row, _ collation.Micros) { r.Held = "for a test" })
	require.Empty(b, b.due(10))
	require.Empty(b, must(b.s.Claim(b.ctx(), claims(due, true)))(b), "held since it was listed")
	b.rewrite(b.view(id).Rows[0], func(r *collation.Row, _ collation.Micros) { r.Held = "" })
	require.Len(b, b.due(10), 1)
	b.must(journaltest.Message(&b.view(id).Rows[0]))
	require.Empty(b, must(b.s.Claim(b.ctx(), claims(due, true)))(b), "gone since it was listed")
})

var _ = test("Rows", "rows without a job are due and claimed like others (T1)", func(b *bench) {
	id := b.jobs(1)[0]
	child, k := b.order(id, 1, true), b.sent(id, b.signal("t", "k", "x"))
	due := slices.DeleteFunc(b.due(10), func(d store.DueRow) bool { return d.Job == id })
	out := must(b.s.Claim(b.ctx(), claims(due, true)))(b)
	require.ElementsMatch(b, []store.Outgoing{{Row: *b.stored(id, keyOf(&child))}, {Row: *b.stored(id, k)}}, out)
	require.Equal(b, []int{1, 1}, []int{out[0].Row.Publication, out[1].Row.Publication})
	require.NoError(b, b.spawn(&child), "its publication is part of no test-and-set")
})

var _ = test("Rows", "sweepers at once send each row once (T8)", func(b *bench) {
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
})

// It lists requests that are past their time, including held ones; collation decides them.
var _ = test("Rows", "what is past its time is late, the first first, held or not (E9)", func(b *bench) {
	b.requested(oneWorker, "patient")
	var want []collation.RowKey
	for i := range 3 {
		r := b.request(b.requested(oneWorker, fmt.Sprint(i)), "work")
		if i == 1 {
			b.answer(r.Job, "work", failure(journal.ResponseParked, "unknown outcome"))
		}
		b.rewrite(r, func(r *collation.Row, now collation.Micros) {
			r.WithinAt = now - collation.Micros(i)*micros(hour)
		})
		want = append([]collation.RowKey{keyOf(&r)}, want...)
	}
	late := func(limit int) []collation.RowKey { return must(b.s.Late(b.ctx(), journal.MessageRequest, limit))(b) }
	require.Equal(b, want, late(10))
	require.Equal(b, want[:2], late(2))
	rev := b.request(want[0].Job, "work").Rev
	require.Equal(b, 3, must(b.s.TurnOverdue(b.ctx(), 10))(b))
	require.Greater(b, b.view(want[0].Job).Rows[0].Rev, rev, "whoever writes a row raises its rev (W6)")
	require.Empty(b, late(10))
	for _, k := range want {
		b.run(k.Job)
	}
	require.Empty(b, b.letters(false), "the answer ends the letter, too (E10)")
})

// It writes every field of a row and reads it back.
var _ = test("Rows", "a row keeps what the engine writes of it, field by field", func(b *bench) {
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
})

var _ = test("Rows", "the next row that is due, or request that is late, is told (W9)", func(b *bench) {
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
	late := b.request(b.requested(twoBranches, "late"), "right")
	require.False(b, timing().Late)
	b.rewrite(late, func(r *collation.Row, now collation.Micros) { r.WithinAt = now - 1 })
	require.True(b, timing().Late)
})

var _ = test("Rows", "more than the limits is refused (T11)", func(b *bench) {
	require.NoError(b, b.s.DeadLetter(b.ctx(), collation.DeadLetter{Kind: journal.MessageLeg1, Reason: "foreign"}, nil))
	b.jobs(1)
	for _, limit := range []int{0, -1} { // the default
		require.Len(b, must(b.s.DeadLetters(b.ctx(), store.DeadFilter{Limit: limit}))(b), 1)
	}
	_, letters := b.s.DeadLetters(b.ctx(), store.DeadFilter{Limit: store.MaxPage + 1})
	_, _, due := b.s.Due(b.ctx(), store.MaxSweep+1)
	_, claim := b.s.Claim(b.ctx(), make([]store.Claim, store.MaxSweep+1))
	_, late := b.s.Late(b.ctx(), journal.MessageRequest, store.MaxSweep+1)
	_, outcomes := b.s.Outcomes(b.ctx(), make([]journal.JobID, store.MaxOutcomes+1))
	for i, err := range []error{letters, due, claim, late, outcomes} {
		require.ErrorIs(b, err, store.ErrRejected, i)
	}
	require.Empty(b, must(b.s.Claim(b.ctx(), nil))(b))
})

// pauseRef names a pause.
func pauseRef(kind journal.PauseKind, name, position string) journal.PauseRef {
	return journal.PauseRef{Kind: kind, Name: name, Position: position}
}

// everyPause returns pauses of every kind, with every field.
func everyPause() []collation.Pause {
	return []collation.Pause{
		{PauseRef: pauseRef(journal.PauseSleep, "clé 'x' \"\\\n<&", "1"), GUID: guid(1)},
		{PauseRef: pauseRef(journal.PauseSignal, "go", "2.0.1"), GUID: guid(2), Timeout: true},
		{PauseRef: pauseRef(journal.PauseSignal, "late", "2.1.1"), GUID: guid(3), Timeout: true, Taken: true},
		{PauseRef: pauseRef(journal.PauseChild, "go", "3"), GUID: guid(4), Taken: true, Came: true},
	}
}

// sleeps returns n open pauses.
func sleeps(n int) []collation.Pause {
	out := make([]collation.Pause, n)
	for i := range out {
		out[i] = collation.Pause{
			PauseRef: pauseRef(journal.PauseSleep, fmt.Sprint("s", i), fmt.Sprint(i+1)), GUID: guid(i),
		}
	}
	return out
}

// pausing adds pauses to the request of a new job.
func (b *bench) pausing(key string, pauses []collation.Pause) collation.Row {
	b.Helper()
	r := b.request(b.requested(oneWorker, key), "work")
	b.rewrite(r, func(r *collation.Row, _ collation.Micros) { r.Pauses, r.NextAt = pauses, collation.Never })
	return b.request(r.Job, "work")
}

// comes adds the record of a pause, as step 1 of its wake-up does.
func comes(request journal.GUID, p *collation.Pause) change {
	return func(plan *collation.Plan, _ *collation.State) {
		ref := p.PauseRef
		plan.ResolvedWait = &collation.ResolvedWait{Request: request, GUID: p.GUID, PauseRef: ref, Seq: plan.Entry.Seq}
		plan.Entry.Marks = append(plan.Entry.Marks, journal.MarkWork)
		plan.Entry.Response = &journal.Response{
			Kind: journal.ResponseWake, Code: collation.CodeOK, Request: request, By: journal.ByTimer, Of: &ref,
			Output: []byte(fmt.Sprintf("%q", p.Name)),
		}
	}
}

// replaces adds a row's new value, raising its rev.
func replaces(r *collation.Row) change {
	return func(p *collation.Plan, _ *collation.State) {
		r.Rev++
		p.Update = append(p.Update, *r)
	}
}

// paused lists the pauses of a request.
func (b *bench) paused(job journal.JobID, request journal.GUID) []store.Pause {
	b.Helper()
	return must(b.s.Pauses(b.ctx(), job, request))(b)
}

// pausedBy names the pauses of a request: those that have come, behind them what stands.
func (b *bench) pausedBy(r *collation.Row) (names string) {
	b.Helper()
	for _, p := range b.paused(r.Job, r.GUID) {
		if names += p.Name; p.Seq > 0 {
			names += "!"
		}
		names += " "
	}
	return strings.TrimSpace(names)
}

var _ = test("Pauses", "a row has its pauses wherever it is read (E12)", func(b *bench) {
	row := b.pausing("k", everyPause())
	require.Equal(b, everyPause(), row.Pauses)
	other := row
	other.GUID, other.Kind = guid(50), journal.MessageAnswer // inserted with all its fields, too
	b.altered(row.Job, inserts(other))
	other.Origin = b.view(row.Job).Head.Seq
	require.Equal(b, &row, b.look(store.Want{Job: row.Job, Row: row.GUID}).States[row.Job].Rows[row.GUID])
	require.Equal(b, &row, b.stored(b.jobs(1)[0], keyOf(&row)), "asked for by another")
	rows := map[journal.GUID]*collation.Row{row.GUID: &row, other.GUID: &other}
	require.Equal(b, rows, b.more(row.Job, collation.Need{AllRows: true}).Rows)
	require.Equal(b, map[journal.GUID]collation.Row{row.GUID: row, other.GUID: other}, b.tables(row.Job).Rows)
	b.rewrite(row, func(r *collation.Row, now collation.Micros) { r.NextAt = now })
	due := slices.DeleteFunc(b.due(10), func(d store.DueRow) bool { return d.GUID != row.GUID })
	out := must(b.s.Claim(b.ctx(), claims(due, true)))(b)
	require.Len(b, out, 1)
	require.Equal(b, everyPause(), out[0].Row.Pauses)
})

// It marks pauses as decisions do, on a row that is not committed.
var _ = test("Pauses", "a loaded row is the caller's own", func(b *bench) {
	row := b.pausing("k", sleeps(2))
	b.stored(row.Job, keyOf(&row)).Pauses[0].Came = true
	for _, r := range b.more(row.Job, collation.Need{AllRows: true}).Rows {
		r.Pauses[1].Taken = true
	}
	b.view(row.Job).Rows[0].Pauses[0].Name = "x"
	require.Equal(b, sleeps(2), b.request(row.Job, "work").Pauses)
	given := sleeps(2)
	row.Pauses = given
	b.altered(row.Job, replaces(&row))
	given[0].Came = true
	require.Equal(b, sleeps(2), b.request(row.Job, "work").Pauses)
})

var _ = test("Pauses", "what has come is listed in its order, behind it what stands", func(b *bench) {
	row := b.pausing("k", sleeps(5))
	require.Equal(b, "s0 s1 s2 s3 s4", b.pausedBy(&row))
	for _, step := range []struct {
		comes int
		want  string
	}{{3, "s3! s0 s1 s2 s4"}, {0, "s3! s0! s1 s2 s4"}, {4, "s3! s0! s4! s1 s2"}} {
		b.altered(row.Job) // makes gaps in the seqs
		p := &row.Pauses[step.comes]
		p.Taken, p.Came = true, true
		b.altered(row.Job, comes(row.GUID, p), replaces(&row))
		require.Equal(b, step.want, b.pausedBy(&row))
	}
	ref := row.Pauses[4].PauseRef
	require.Equal(b, store.Pause{PauseRef: ref, Seq: b.view(row.Job).Head.Seq, Response: &journal.Response{
		Kind: journal.ResponseWake, Code: collation.CodeOK, Request: row.GUID, By: journal.ByTimer, Of: &ref,
		Output: []byte(`"s4"`),
	}}, b.paused(row.Job, row.GUID)[2])
	row.Pauses = row.Pauses[1:2] // the next suspension names only this one
	b.altered(row.Job, replaces(&row))
	require.Equal(b, "s3! s0! s4! s1", b.pausedBy(&row))
	row.Pauses[0].Taken = true
	b.altered(row.Job, replaces(&row))
	require.Equal(b, "s3! s0! s4! s1", b.pausedBy(&row), "accepted, and not recorded")
	b.altered(row.Job, comes(row.GUID, &row.Pauses[0]))
	require.Equal(b, "s3! s0! s4! s1!", b.pausedBy(&row), "recorded, step 2 is to come (1.7)")
	row.Pauses = append(row.Pauses, collation.Pause{PauseRef: pauseRef(journal.PauseChild, "s1", "9"), GUID: guid(9)})
	b.altered(row.Job, replaces(&row))
	require.Equal(b, "s3! s0! s4! s1! s1", b.pausedBy(&row), "another kind is another pause")
})

var _ = test("Pauses", "requests and jobs have their own, each once (C3)", func(b *bench) {
	first, second := b.pausing("a", sleeps(2)), b.pausing("b", sleeps(2)) // the same GUIDs
	b.altered(first.Job, comes(first.GUID, &first.Pauses[0]))
	require.Equal(b, []string{"s0! s1", "s0 s1"}, []string{b.pausedBy(&first), b.pausedBy(&second)})
	b.altered(second.Job, comes(second.GUID, &first.Pauses[0]))
	other := collation.Row{Job: first.Job, GUID: guid(77)}
	p := first.Pauses[0]
	p.GUID = guid(78)
	b.altered(first.Job, comes(other.GUID, &p))
	require.Equal(b, []string{"s0! s1", "s0! s1", "s0!"}, []string{b.pausedBy(&first), b.pausedBy(&second), b.pausedBy(&other)})
	for _, k := range []collation.RowKey{
		{Job: first.Job, GUID: guid(99)},
		{Job: journal.JobID{1}, GUID: first.GUID},
		{Job: second.Job, GUID: first.GUID},
	} {
		require.Empty(b, b.paused(k.Job, k.GUID))
	}

	before, again := b.view(first.Job), first.Pauses[1]
	again.GUID = first.Pauses[0].GUID
	first.Undo = true
	require.ErrorIs(b, b.alter(first.Job, comes(first.GUID, &again), replaces(&first)), store.ErrLost)
	require.Equal(b, before, b.view(first.Job), "nothing is written")
	require.Equal(b, "s0! s1", b.pausedBy(&first))
})

// It reads while pauses come. Each read must find each pause once, either recorded or
// open.
var _ = test("Pauses", "who reads while pauses come misses none, and sees no other (E13)", func(b *bench) {
	const n = 60
	row := b.pausing("k", sleeps(n))
	var done atomic.Bool
	together(3, func(i int) {
		if i == 0 {
			defer done.Store(true)
			for k := range row.Pauses {
				row.Pauses[k].Taken, row.Pauses[k].Came = true, true
				b.check(b.alter(row.Job, comes(row.GUID, &row.Pauses[k]), replaces(&row)))
			}
			return
		}
		for last := false; !last; {
			last = done.Load()
			list, err := b.s.Pauses(b.ctx(), row.Job, row.GUID)
			if err != nil || len(list) != n {
				b.Errorf("%d pauses, %v", len(list), err)
				return
			}
			for k := range list {
				if list[k].Name != fmt.Sprint("s", k) || last && list[k].Seq == 0 {
					b.Errorf("pause %d is %+v", k, list[k])
				}
			}
		}
	})
})
