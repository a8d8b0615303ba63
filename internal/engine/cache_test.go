package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// W6: the cache is bounded in bytes, the least recently used state goes first, and a state that
// may not be kept goes at once.
func TestHotIsBounded(t *testing.T) {
	t.Parallel()
	state := func(n byte) *collation.State {
		return &collation.State{Job: collation.Job{ID: journal.JobID{n}, State: journal.JobOpen}, Whole: true}
	}
	h := newCache(3 * state(0).Size())
	for n := range byte(3) {
		h.put(state(n))
	}
	require.NotNil(t, h.state(journal.JobID{0}))
	h.put(state(3))
	require.Nil(t, h.state(journal.JobID{1}), "the least recently used")
	for _, n := range []byte{0, 2, 3} {
		require.NotNil(t, h.state(journal.JobID{n}))
	}
	closed := state(2)
	closed.Job.State = journal.JobCompleted
	h.put(closed)
	require.Nil(t, h.state(journal.JobID{2}), "it has ended")
	h.drop(journal.JobID{0}, journal.JobID{9})
	require.Nil(t, h.state(journal.JobID{0}))
	large := state(3)
	large.Results = map[collation.InstanceKey]*flow.Result{{}: {Output: make([]byte, h.most)}}
	h.put(large)
	require.Nil(t, h.state(journal.JobID{3}), "it is larger than all may be")
	require.Zero(t, h.bytes)
	require.Zero(t, h.used.Len())

	off := newCache(-1)
	off.put(state(1))
	require.Nil(t, off.state(journal.JobID{1}))
}

// warmth is a loop over memory whose loads are counted.
type warmth struct {
	t *testing.T
	*loop
	st    *memstore.Store
	ref   journal.FlowRef
	loads atomic.Int64 // of jobs
}

func newWarmth(t *testing.T) *warmth {
	t.Helper()
	return warmthOf(t, flow.New("two").Version("1").Trigger("start").Worker("a", "topic").Worker("b", "topic").
		Transition("start", "a").Transition("a", "b"))
}

func warmthOf(t *testing.T, f *flow.Builder) *warmth {
	t.Helper()
	w := &warmth{t: t}
	w.loop, w.st = over(t, &hooked{load: func(wants []store.Want) error {
		w.loads.Add(int64(len(wants)))
		return nil
	}}, Config{})
	w.ref = deployed(t, w.st, f)
	_, err := w.flows.Get(t.Context(), w.ref)
	require.NoError(t, err)
	return w
}

// begin starts a job in a batch of its own, and returns its first request.
func (w *warmth) begin(key string) collation.Row {
	w.t.Helper()
	s := &start{
		Start: store.Start{Flow: w.ref, Trigger: "start", Key: key, Input: []byte(`{}`)}, flow: w.flows.Cached(w.ref.Digest),
	}
	x := &call{name: callStart, wants: s.want, decides: s.decide, lost: s.lose, done: make(chan struct{})}
	b, err := w.transact(w.t.Context(), []item{x}, true)
	require.NoError(w.t, err)
	return b.plans[1].Plan.Insert[0]
}

// response is a worker's response to a request.
func response(r *collation.Row) *message {
	return &message{epoch: 1, flow: flowKey{"two", "1"}, msg: collation.Message{
		Kind: journal.MessageResponse, Job: r.Job, GUID: collation.ResponseGUID(r.GUID, r.Turn), Row: r.GUID,
		Activity: r.Activity,
		DAD:      r.DAD, Turn: r.Turn,
		Response: &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: []byte(`1`)},
	}}
}

// W6: a job that this process began reaches its end without a load.
func TestW6AHotJobIsNotLoaded(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	row := w.begin("k")
	for _, last := range []bool{false, true} {
		it := response(&row)
		b, err := w.transact(t.Context(), []item{it}, true)
		require.NoError(t, err)
		require.Equal(t, collation.Handled, it.plan.Outcome)
		if !last {
			row = b.plans[0].Plan.Insert[0]
		}
	}
	require.Zero(t, w.loads.Load())
	view, err := w.st.Job(t.Context(), row.Job)
	require.NoError(t, err)
	require.Equal(t, journal.JobCompleted, view.State)
	require.Nil(t, w.cache.state(row.Job), "it has ended")
}

// W6: a job that waits for a signal stays hot. The wake-up by a signal that this process took
// needs no load. Whether the wait is still open does, since others may have ended it.
func TestW6AHotJobWaitsForASignal(t *testing.T) {
	t.Parallel()
	for _, by := range []journal.By{journal.BySignal, journal.ByTimer} {
		w := warmthOf(t, flow.New("two").Version("1").Trigger("start").Hook("go", flow.WaitFor("t", "k"), flow.Sleep("1h")).
			Transition("start", "go"))
		row := w.begin("k")
		loads := int64(1)
		if by == journal.BySignal {
			box := collation.Mailbox("test", "t", "k")
			signal := &call{
				name: "signal", box: &box, wants: func() []store.Want {
					return []store.Want{{Box: box}}
				}, done: make(chan struct{}),
				decides: func(b *batch) error { _, err := b.signal(box, told("k", 1)); return err },
			}
			b, err := w.transact(t.Context(), []item{signal}, true)
			require.NoError(t, err)
			row = b.plans[0].Plan.Insert[0]
			require.EqualValues(t, 1, w.loads.Swap(0), "the mailbox")
			loads = 0
		}
		it := &message{epoch: 1, flow: flowKey{"two", "1"}, msg: collation.Message{
			Kind: row.Kind, Job: row.Job, GUID: row.GUID, Row: row.GUID, Activity: row.Activity, DAD: row.DAD,
		}}
		_, err := w.transact(t.Context(), []item{it}, true)
		require.NoError(t, err)
		require.Equal(t, collation.Handled, it.plan.Outcome, by)
		require.Equal(t, loads, w.loads.Load(), by)
		view, err := w.st.Job(t.Context(), row.Job)
		require.NoError(t, err)
		require.Equal(t, journal.JobCompleted, view.State)
		require.Empty(t, view.Waits)
		require.Empty(t, view.Rows)
	}
}

// W6: a verdict that writes nothing is decided on a load, and so are all other messages of that
// job in the batch.
func TestW6IdleVerdictsAreLoaded(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	row := w.begin("k")
	first, again := response(&row), response(&row)
	b, err := w.transact(t.Context(), []item{first, again}, true)
	require.NoError(t, err)
	require.Equal(t, collation.Handled, first.plan.Outcome)
	require.Equal(t, collation.NoRow, again.plan.Outcome)
	require.Empty(t, b.guessed.jobs)
	require.EqualValues(t, 2, w.loads.Load())
	require.NotNil(t, w.cache.state(row.Job), "it was loaded whole")

	next := b.plans[0].Plan.Insert[0]
	foreign := response(&next)
	foreign.msg.Row = journal.GUID{1}
	_, err = w.transact(t.Context(), []item{foreign}, true)
	require.NoError(t, err)
	require.Equal(t, collation.NoRow, foreign.plan.Outcome)
	require.EqualValues(t, 3, w.loads.Load())
}

// W6: an outdated hot state loses at the commit, alone: its job is loaded, and the decisions on
// the others hold.
func TestW6OneLoserDoesNotCostTheOthers(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	stale, other := w.begin("stale"), w.begin("other")
	own, err := w.st.OpenSession(t.Context(), store.Process{Name: "w", Lease: time.Minute})
	require.NoError(t, err)
	_, err = w.st.Lease(t.Context(), stale.Job, stale.GUID, stale.Turn, "w", own.ID())
	require.NoError(t, err)
	items := []*message{response(&stale), response(&other)}
	_, err = w.transact(t.Context(), carried(items...), true)
	require.ErrorIs(t, err, store.ErrLost)
	require.Nil(t, w.cache.state(stale.Job))
	require.NotNil(t, w.cache.state(other.Job))
	b, err := w.transact(t.Context(), carried(items...), true)
	require.NoError(t, err)
	require.Equal(t, []journal.JobID{other.Job}, b.guessed.jobs)
	require.EqualValues(t, 1, w.loads.Load())
	for _, it := range items {
		require.Equal(t, collation.Handled, it.plan.Outcome)
	}
	require.NotNil(t, w.cache.state(stale.Job), "it is hot again")
}

// W6: the answer of a run in another process that has written the request's row is decided on a load,
// not on the row that is remembered.
func TestW6ARowThatAnotherProcessHasWrittenIsLoaded(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	own, err := w.st.OpenSession(t.Context(), store.Process{Name: "here", Lease: time.Minute})
	require.NoError(t, err)
	w.cfg.Session = living(own.ID())
	row := w.begin("k")
	m := response(&row)
	m.moved = true
	b, err := w.transact(t.Context(), []item{m}, true)
	require.NoError(t, err)
	require.Empty(t, b.guessed.jobs)
	require.Equal(t, collation.Handled, m.plan.Outcome)
	require.EqualValues(t, 1, w.loads.Load())
}

// W6: if a call wants a job, the job is loaded for everything in the batch.
func TestW6CallsAreLoaded(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	row := w.begin("k")
	asked := &call{
		name: "look", done: make(chan struct{}), wants: func() []store.Want { return []store.Want{{Job: row.Job}} },
		decides: func(b *batch) error {
			require.NotNil(t, b.loaded.States[row.Job])
			return nil
		},
	}
	b, err := w.transact(t.Context(), []item{asked, response(&row)}, true)
	require.NoError(t, err)
	require.Empty(t, b.guessed.jobs)
	require.EqualValues(t, 2, w.loads.Load())
}

// W7: a guess that is dropped frees its slots. The job is decided again, and takes slots again.
func TestW7AGuessThatIsGivenUpGivesBackItsSlots(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	slots := &slots{}
	own, err := w.st.OpenSession(t.Context(), store.Process{Name: "here", Lease: time.Minute})
	require.NoError(t, err)
	w.cfg.Local, w.cfg.Session = slots, living(own.ID())
	row := w.begin("k")
	require.Equal(t, 1, slots.taken)
	b, err := w.transact(t.Context(), []item{response(&row), response(&row)}, true)
	require.NoError(t, err)
	require.Empty(t, b.guessed.jobs, "the second is no more than a repetition")
	require.Equal(t, 2, slots.taken, "one for each request that was committed")
	require.Len(t, b.out, 1)
	require.True(t, b.out[0].Taken)
	require.Equal(t, b.out[0].Row.Holder, b.plans[0].Plan.Insert[0].Holder)
}

// slots counts what is taken.
type slots struct {
	Local // nothing of these tests begins early
	taken int
}

func (s *slots) Take(string) (string, bool) { s.taken++; return "here", true }
func (s *slots) Drop(string)                { s.taken-- }

// living is a session that never ends.
type living int64

func (l living) Current() (int64, bool) { return int64(l), true }
func (l living) Alive(id int64) bool    { return id == int64(l) }
func (living) Ended(int64)              {}
func (living) Return(store.Lease)       {}

// W8: a process that is not sure of its session begins no effect. It ends those that it began,
// and takes no lease with that.
func TestW8WhoIsNotSureOfItsSessionBeginsNothing(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	own, err := w.st.OpenSession(t.Context(), store.Process{Name: "here", Lease: time.Minute})
	require.NoError(t, err)
	go func() { _ = w.Run(t.Context()) }()
	row := w.begin("k")
	l, err := w.st.Lease(t.Context(), row.Job, row.GUID, row.Turn, "w", own.ID())
	require.NoError(t, err)
	begun := journal.Effect{Key: journal.Digest{1}, Name: "pay", Class: store.ClassIdempotent, N: 1}
	w.cfg.Session = living(own.ID())
	_, _, err = w.Worker().StartEffect(t.Context(), l, begun)
	require.NoError(t, err)
	w.cfg.Session = living(own.ID() + 1)
	_, _, err = w.Worker().StartEffect(t.Context(), l,
		journal.Effect{Key: journal.Digest{2}, Name: "more", Class: store.ClassIdempotent, N: 1})
	require.ErrorIs(t, err, store.ErrStale)
	end, err := w.Worker().FinishEffect(t.Context(), l, begun, false)
	require.NoError(t, err)
	require.Equal(t, store.EffectCompleted, end.State)
}

// W8: a process takes something with a commit only while its session lasts.
func TestW8NothingIsTakenForASessionThatHasEnded(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	own, err := w.st.OpenSession(t.Context(), store.Process{Name: "here", Lease: time.Minute})
	require.NoError(t, err)
	row := w.begin("k")
	slots := &slots{}
	w.cfg.Local, w.cfg.Session = slots, living(own.ID())
	require.NoError(t, own.End(t.Context()))
	_, err = w.transact(t.Context(), []item{response(&row)}, true)
	var lost *store.LostError
	require.ErrorAs(t, err, &lost)
	require.True(t, lost.Session)
	require.Zero(t, slots.taken)
}
