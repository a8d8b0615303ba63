package journaltest

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var pauses = cases{
	"a row has its pauses wherever it is read (E12)":                   pauseRows,
	"a loaded row is the caller's own":                                 pauseCopies,
	"what has come is listed in its order, behind it what stands":      pauseOrder,
	"requests and jobs have their own, each once (C3)":                 pauseOwn,
	"who reads while pauses come misses none, and sees no other (E13)": pauseWhile,
}

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
		out[i] = collation.Pause{PauseRef: pauseRef(journal.PauseSleep, fmt.Sprint("s", i), fmt.Sprint(i+1)), GUID: guid(i)}
	}
	return out
}

// pausing adds pauses to the request of a new job.
func (b *bench) pausing(key string, pauses []collation.Pause) collation.Row {
	b.Helper()
	r := b.request(b.requested(one, key), "work")
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
	return got(b.s.Pauses(b.ctx(), job, request))(b)
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

func pauseRows(b *bench) {
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
	out := got(b.s.Claim(b.ctx(), claims(due, true)))(b)
	require.Len(b, out, 1)
	require.Equal(b, everyPause(), out[0].Row.Pauses)
}

// pauseCopies marks pauses as decisions do, on a row that is not committed.
func pauseCopies(b *bench) {
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
}

func pauseOrder(b *bench) {
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
		Kind: journal.ResponseWake, Code: collation.CodeOK, Request: row.GUID, By: journal.ByTimer, Of: &ref, Output: []byte(`"s4"`),
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
}

func pauseOwn(b *bench) {
	first, second := b.pausing("a", sleeps(2)), b.pausing("b", sleeps(2)) // the same GUIDs
	b.altered(first.Job, comes(first.GUID, &first.Pauses[0]))
	require.Equal(b, []string{"s0! s1", "s0 s1"}, []string{b.pausedBy(&first), b.pausedBy(&second)})
	b.altered(second.Job, comes(second.GUID, &first.Pauses[0]))
	other := collation.Row{Job: first.Job, GUID: guid(77)}
	p := first.Pauses[0]
	p.GUID = guid(78)
	b.altered(first.Job, comes(other.GUID, &p))
	require.Equal(b, []string{"s0! s1", "s0! s1", "s0!"}, []string{b.pausedBy(&first), b.pausedBy(&second), b.pausedBy(&other)})
	for _, k := range []collation.RowKey{{Job: first.Job, GUID: guid(99)}, {Job: journal.JobID{1}, GUID: first.GUID}, {Job: second.Job, GUID: first.GUID}} {
		require.Empty(b, b.paused(k.Job, k.GUID))
	}

	before, again := b.view(first.Job), first.Pauses[1]
	again.GUID = first.Pauses[0].GUID
	first.Undo = true
	require.ErrorIs(b, b.alter(first.Job, comes(first.GUID, &again), replaces(&first)), store.ErrLost)
	require.Equal(b, before, b.view(first.Job), "nothing is written")
	require.Equal(b, "s0! s1", b.pausedBy(&first))
}

// pauseWhile reads while pauses come. Each read must find each pause once, either recorded or
// open.
func pauseWhile(b *bench) {
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
}
