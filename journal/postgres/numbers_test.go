package postgres

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// W11: a process that remembers the number of a job which another has moved meanwhile writes nothing
// under it, and reads the job where it is.
func TestW11OldNumbers(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := openCommitter(t, s)
	ids := keep(t, s, c, day, "moved")
	st := load(t, c, store.Want{Job: ids[0]})
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, grow(st, 0))}))
	old := s.numbers.span(ids)
	require.NotEqual(t, allJobs, old)
	other := must(Open(t.Context(), Config{DSN: s.cfg.DSN, Space: s.cfg.Space}))(t)
	t.Cleanup(other.Close)
	if seal := s.seal.Load(); seal != nil {
		other.Seal(*seal)
	}
	before := load(t, c, store.Want{Job: ids[0], Instances: []collation.InstanceKey{work}}) // what a hot state would be
	require.NoError(t, c.Rollback(t.Context()))
	shut(t, s, 1, classes[1].longest)
	for must(other.Retire(t.Context(), nil))(t) {
	}
	require.Equal(t, old, s.numbers.span(ids), "this process still knows the old number")

	head := heads(t, s, ids[0])
	plans := []store.Chained{chained(before, plan(before))}
	err := c.Commit(t.Context(), plans)
	require.ErrorIs(t, err, store.ErrLost)
	require.Equal(t, head, heads(t, s, ids[0]))
	require.Equal(t, allJobs, s.numbers.span(ids), "it was forgotten")
	require.NoError(t, c.Commit(t.Context(), plans))

	s.numbers.set(ids[0], old.from)
	st = load(t, c, store.Want{Job: ids[0], Instances: []collation.InstanceKey{work}})
	require.NotNil(t, st.Instances[work])
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, plan(st))}))

	st = load(t, c, store.Want{Job: ids[0], Instances: []collation.InstanceKey{work}})
	p := plan(st)
	p.NewState = journal.JobFailed
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, p)}))
	s.numbers.set(ids[0], old.from)
	want := must(other.Outcomes(t.Context(), ids))(t)
	got := must(s.Outcomes(t.Context(), ids))(t)
	require.Equal(t, want, got)
	require.NotEqual(t, old, s.numbers.span(ids), "it was learned")
	requireWholeOrTombstone(t, s, ids[0], map[journal.JobID]journal.Head{ids[0]: heads(t, s, ids[0])})
}

// W11: a number that is remembered and old hides no effect. A read notices it and reads again; a
// commit is lost, and forgets it.
func TestW11OldNumbersOfEffects(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	l := ask(t, s, 1)[0]
	e := effectNamed("charge")
	e.Class = store.ClassIdempotent
	w := worker(t, s)
	row, _, err := w.StartEffect(t.Context(), l, e)
	require.NoError(t, err)
	l.Fence, l.Fresh = row.Fence, false
	n := s.numbers.span([]journal.JobID{l.Job})
	require.NotEqual(t, allJobs, n)
	old := n.from + classNumbers

	c := openCommitter(t, s)
	s.numbers.set(l.Job, old)
	loaded := must(c.Load(t.Context(), []store.Want{{Chain: l.Key(), Effects: []journal.Digest{e.Key}}}, true))(t)
	require.Equal(t, n, s.numbers.span([]journal.JobID{l.Job}), "it was learned")
	chain := loaded.Chains[l.Key()]
	require.Contains(t, chain.Effects, e.Key)
	e.Result = []byte(`1`)
	end := must(chain.Finish(l, e, false, collation.Mode{}))(t)
	s.numbers.set(l.Job, old)
	require.ErrorIs(t, c.Commit(t.Context(), []store.Chained{{Plan: end.Plan}}), store.ErrLost)
	require.Equal(t, allJobs, s.numbers.span([]journal.JobID{l.Job}), "it was forgotten")
	require.Equal(t, 1, s.rows(t, "effects WHERE state = 'started'"))

	s.numbers.set(l.Job, old)
	must(w.FinishEffect(t.Context(), l, e, false))(t)
	require.Equal(t, 1, s.rows(t, "effects WHERE state = 'completed'"))

	e.Key = journal.Digest{7} // its end is committed while the number is not known
	row, _, err = w.StartEffect(t.Context(), l, e)
	require.NoError(t, err)
	l.Fence = row.Fence
	loaded = must(c.Load(t.Context(), []store.Want{{Chain: l.Key(), Effects: []journal.Digest{e.Key}}}, true))(t)
	end = must(loaded.Chains[l.Key()].Finish(l, e, false, collation.Mode{}))(t)
	s.numbers.set(l.Job, 0)
	require.NoError(t, c.Commit(t.Context(), []store.Chained{{Plan: end.Plan}}))
	require.Equal(t, 2, s.rows(t, "effects WHERE state = 'completed'"))
}

// S13: a job that begins has the number that it gets, whatever this process remembers. A job with its ID
// began before, in what a promotion or a restore has lost, and had another number.
func TestS13OldNumbersOfJobsThatBegin(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	begin := starting(t, s)
	id := collation.NewJobID(s.cfg.Space, "k", 1)
	s.numbers.set(id, classNumbers+7)
	began := begin("k")[0] // with its first step in one commit
	require.NoError(t, began.Err)
	require.Equal(t, id, began.Job)
	for _, table := range []string{"entries", "instances", "receipts"} {
		require.Zero(t, s.rows(t, table+" x WHERE NOT EXISTS (SELECT FROM jobs j WHERE j.n = x.n)"), table)
	}
	require.Positive(t, s.rows(t, "entries"))
	requireWholeOrTombstone(t, s, id, map[journal.JobID]journal.Head{id: heads(t, s, id)})
}

// W3: what a process remembers of numbers is bounded, and those in use stay.
func TestNumbersAreBounded(t *testing.T) {
	t.Parallel()
	var k numbers
	id := func(n int) (id journal.JobID) { copy(id[:], fmt.Sprintf("%16d", n)); return id }
	for n := range 10 * manyNumbers {
		k.set(id(n), int64(n)+1)
		require.Equal(t, span{1, 1}, k.span([]journal.JobID{id(0)}))
		require.LessOrEqual(t, len(k.recent)+len(k.older), 2*manyNumbers)
	}
	require.Equal(t, allJobs, k.span([]journal.JobID{id(0), id(manyNumbers)}))
}

// W10: rows are written by the class of their jobs, and those without a known number by themselves.
func TestSpans(t *testing.T) {
	t.Parallel()
	var rows []*jobWrite
	for _, n := range []int64{5, 0, classNumbers + 7, 3, classNumbers + 2} {
		rows = append(rows, &jobWrite{n: n})
	}
	got := map[span][]int64{}
	for s, same := range spans(rows, func(j *jobWrite) *jobWrite { return j }) {
		for _, j := range same {
			got[s] = append(got[s], j.n)
		}
	}
	require.Equal(t, map[span][]int64{
		{3, 5}: {5, 3}, allJobs: {0}, {classNumbers + 2, classNumbers + 7}: {classNumbers + 7, classNumbers + 2},
	}, got)
}
