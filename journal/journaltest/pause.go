package journaltest

import (
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var pauses = map[string]func(*bench){
	"a row has its pauses wherever it is read (E12)":                   pauseRows,
	"a loaded row is the caller's own":                                 pauseCopies,
	"what has come is listed in its order, behind it what stands":      pauseOrder,
	"what is recorded does not stand, whatever its row says (1.7)":     pauseStands,
	"requests and jobs have their own":                                 pauseOwn,
	"a pause is recorded once (C3)":                                    pauseOnce,
	"who reads while pauses come misses none, and sees no other (E13)": pauseWhile,
	"pauses of one batch (J6)":                                         pauseBatch,
	"the pauses of a job that expires go with it (J7)":                 pauseExpiry,
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

// asks adds pauses to the request of a new job.
func (b *bench) asks(key string, pauses []collation.Pause) collation.Row {
	b.Helper()
	id := b.requested(one, key)
	b.rewrite(id, b.request(id, "work"), func(r *collation.Row, _ collation.Micros) {
		r.Pauses, r.NextAt = pauses, collation.Never
	})
	return b.request(id, "work")
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
	list := got(b.s.Pauses(b.ctx(), job, request))(b)
	return list
}

// came lists the resolved pauses of a request.
func (b *bench) came(job journal.JobID, request journal.GUID) []store.Pause {
	b.Helper()
	return slices.DeleteFunc(b.paused(job, request), func(p store.Pause) bool { return p.Seq == 0 })
}

func names(list []store.Pause) []string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = p.Name
	}
	return out
}

func pauseRows(b *bench) {
	row := b.asks("k", everyPause())
	require.Equal(b, everyPause(), row.Pauses)
	other := row
	other.GUID, other.Kind = guid(50), journal.MessageAnswer // inserted with all its fields, too
	b.altered(row.Job, inserts(other))
	other.Origin = b.view(row.Job).Head.Seq
	l := b.look(store.Want{Job: row.Job, Row: row.GUID})
	require.Equal(b, &row, l.States[row.Job].Rows[row.GUID])
	helper := b.start(b.deploy(one), "helper")
	require.Equal(b, &row, b.stored(helper, keyOf(&row)), "asked for by another")
	rows := map[journal.GUID]*collation.Row{row.GUID: &row, other.GUID: &other}
	require.Equal(b, rows, b.more(row.Job, collation.Need{AllRows: true}).Rows)
	err := b.s.Audit(b.ctx(), row.Job, func(s *store.Stored, _ iter.Seq2[journal.Record, error]) error {
		require.Equal(b, map[journal.GUID]collation.Row{row.GUID: row, other.GUID: other}, s.Rows)
		return nil
	})
	require.NoError(b, err)
	b.rewrite(row.Job, row, func(r *collation.Row, now collation.Micros) { r.NextAt = now })
	due := slices.DeleteFunc(b.due(10), func(d store.DueRow) bool { return d.GUID != row.GUID })
	out := got(b.s.Claim(b.ctx(), claims(due, true)))(b)
	require.Len(b, out, 1)
	require.Equal(b, everyPause(), out[0].Row.Pauses)
}

// pauseCopies marks pauses as decisions do, on a row that is not committed.
func pauseCopies(b *bench) {
	row := b.asks("k", sleeps(2))
	mine := b.stored(row.Job, keyOf(&row))
	mine.Pauses[0].Came = true
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
	row := b.asks("k", sleeps(5))
	require.Equal(b, []string{"s0", "s1", "s2", "s3", "s4"}, names(b.paused(row.Job, row.GUID)))
	var want []store.Pause
	for _, i := range []int{3, 0, 4} {
		b.altered(row.Job, func(*collation.Plan, *collation.State) {}) // makes gaps in the seqs
		row.Pauses[i].Taken, row.Pauses[i].Came = true, true
		b.altered(row.Job, all(comes(row.GUID, &row.Pauses[i]), replaces(&row)))
		ref := row.Pauses[i].PauseRef
		want = append(want, store.Pause{PauseRef: ref, Seq: b.view(row.Job).Head.Seq, Response: &journal.Response{
			Kind: journal.ResponseWake, Code: collation.CodeOK, Request: row.GUID, By: journal.ByTimer, Of: &ref,
			Output: []byte(fmt.Sprintf("%q", ref.Name)),
		}})
		stand := slices.DeleteFunc(slices.Clone(row.Pauses), func(p collation.Pause) bool { return p.Came })
		all := slices.Clone(want)
		for _, p := range stand {
			all = append(all, store.Pause{PauseRef: p.PauseRef})
		}
		require.Equal(b, all, b.paused(row.Job, row.GUID))
	}
	row.Pauses = row.Pauses[1:2] // the next suspension names only this one
	b.altered(row.Job, replaces(&row))
	require.Equal(b, []string{"s3", "s0", "s4", "s1"}, names(b.paused(row.Job, row.GUID)))
}

// pauseStands looks between the steps of wake-ups.
func pauseStands(b *bench) {
	row := b.asks("k", sleeps(3))
	row.Pauses[1].Taken = true
	b.altered(row.Job, replaces(&row))
	require.Equal(b, []string{"s0", "s1", "s2"}, names(b.paused(row.Job, row.GUID)), "accepted, and not recorded")
	require.Empty(b, b.came(row.Job, row.GUID))
	b.altered(row.Job, comes(row.GUID, &row.Pauses[1]))
	require.Equal(b, []string{"s1", "s0", "s2"}, names(b.paused(row.Job, row.GUID)), "recorded, step 2 is to come")
	require.Len(b, b.came(row.Job, row.GUID), 1)
	child := collation.Pause{PauseRef: pauseRef(journal.PauseChild, "s1", "9"), GUID: guid(9)}
	row.Pauses = append(row.Pauses, child)
	b.altered(row.Job, replaces(&row))
	require.Equal(b, []string{"s1", "s0", "s2", "s1"}, names(b.paused(row.Job, row.GUID)), "another kind is another pause")
}

func pauseOwn(b *bench) {
	first, second := b.asks("a", sleeps(1)), b.asks("b", sleeps(1)) // the same GUIDs
	p := &first.Pauses[0]
	b.altered(first.Job, comes(first.GUID, p))
	require.Len(b, b.came(first.Job, first.GUID), 1)
	require.Equal(b, []store.Pause{{PauseRef: p.PauseRef}}, b.paused(second.Job, second.GUID))
	b.altered(second.Job, comes(second.GUID, p))
	other := guid(77)
	q := *p
	q.GUID = guid(78)
	b.altered(first.Job, comes(other, &q))
	require.Len(b, b.came(first.Job, first.GUID), 1)
	require.Len(b, b.came(first.Job, other), 1)
	for _, k := range []collation.RowKey{{Job: first.Job, GUID: guid(99)}, {Job: journal.JobID{1}, GUID: first.GUID}, {Job: second.Job, GUID: first.GUID}} {
		require.Empty(b, b.paused(k.Job, k.GUID))
	}
}

func pauseOnce(b *bench) {
	row := b.asks("k", sleeps(2))
	b.altered(row.Job, comes(row.GUID, &row.Pauses[0]))
	before, list := b.view(row.Job), b.paused(row.Job, row.GUID)
	again := row.Pauses[1]
	again.GUID = row.Pauses[0].GUID
	row.Undo = true
	require.ErrorIs(b, b.alter(row.Job, all(comes(row.GUID, &again), replaces(&row))), store.ErrLost)
	require.Equal(b, before, b.view(row.Job), "nothing is written")
	require.Equal(b, list, b.paused(row.Job, row.GUID))
}

// pauseWhile reads while pauses come. Each read must find each pause once, either recorded or
// open.
func pauseWhile(b *bench) {
	const n = 60
	row := b.asks("k", sleeps(n))
	var done atomic.Bool
	together(3, func(i int) {
		if i == 0 {
			defer done.Store(true)
			for k := range row.Pauses {
				row.Pauses[k].Taken, row.Pauses[k].Came = true, true
				if err := b.alter(row.Job, all(comes(row.GUID, &row.Pauses[k]), replaces(&row))); err != nil {
					b.Errorf("wake %d: %v", k, err)
					return
				}
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

func pauseBatch(b *bench) {
	first, second := b.asks("a", sleeps(3)), b.asks("b", sleeps(3))
	l := b.locked(b.c, []store.Want{{Job: first.Job}, {Job: second.Job}}...)
	var plans []store.Chained
	for i := range 3 {
		for _, row := range []*collation.Row{&first, &second} {
			st := l.States[row.Job]
			row.Pauses[i].Came = true
			next := *row
			next.Pauses = slices.Clone(row.Pauses)
			p := handmade(st, &collation.Message{Job: row.Job})
			all(comes(row.GUID, &row.Pauses[i]), replaces(&next))(p, st)
			row.Rev = next.Rev
			plans = append(plans, store.Chain(&st.Job, p))
			st.Apply(p)
		}
	}
	require.NoError(b, b.c.Commit(b.ctx(), plans))
	for _, row := range []*collation.Row{&first, &second} {
		require.Equal(b, row.Pauses, b.request(row.Job, "work").Pauses)
		require.Equal(b, []string{"s0", "s1", "s2"}, names(b.came(row.Job, row.GUID)))
	}
}

func pauseExpiry(b *bench) {
	row := b.asks("k", sleeps(9))
	for i := range row.Pauses {
		b.altered(row.Job, comes(row.GUID, &row.Pauses[i]))
	}
	b.finish(row.Job, b.now())
	was := b.view(row.Job)
	require.Len(b, b.paused(row.Job, row.GUID), 9)
	b.expire(2)
	b.requireTombstone(was)
	require.Empty(b, b.paused(row.Job, row.GUID))
}
