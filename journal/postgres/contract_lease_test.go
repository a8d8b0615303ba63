package postgres

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// asked starts a job of flow one and returns its request's row.
func (b *bench) asked() collation.Row {
	b.Helper()
	return b.request(b.requested(oneWorker, "k"), "work")
}

func (b *bench) lease(r collation.Row, holder string) store.Lease {
	b.Helper()
	return b.leaseFor(r, holder, b.live())
}

// leaseFor is lease for a run of another process.
func (b *bench) leaseFor(r collation.Row, holder string, of store.Session) store.Lease {
	b.Helper()
	return must(b.s.Lease(b.ctx(), r.Job, r.GUID, r.Turn, holder, of.ID()))(b)
}

// unleased requires that no lease is given.
func (b *bench) unleased(r collation.Row, why ...error) {
	b.Helper()
	requireOneOf(b, failed(b.s.Lease(b.ctx(), r.Job, r.GUID, r.Turn, "another", b.live().ID())), why...)
}

// fresh returns the lease of a run that was not leased.
func (b *bench) fresh(r collation.Row, holder string) store.Lease {
	return store.Lease{
		Job: r.Job, Request: r.GUID, Generation: 1, Turn: r.Turn, Fence: r.Fence, Holder: holder,
		Session: b.live().ID(), Fresh: true,
	}
}

// held checks that a run has the only lease that was given.
func (b *bench) held(r collation.Row, holder string) {
	b.Helper()
	row := b.request(r.Job, "work")
	require.Equal(b, []any{holder, b.live().ID(), r.Fence + 1, 1}, []any{row.Holder, row.Session, row.Fence, row.Runs})
	require.Equal(b, collation.Never, row.NextAt, "nobody else is asked as long as it lasts (P21)")
}

var _ = test("Lease", "a lease is of one run: holder, session, fence (E9, W8)", func(b *bench) {
	r := b.asked()
	require.Equal(b, store.Lease{
		Job: r.Job, Request: r.GUID, Space: b.space(), Generation: 1, Turn: 1, Holder: "w1", Session: b.live().ID(),
		Fence: 1, Runs: 1,
	}, b.lease(r, "w1"))
	b.unleased(r, store.ErrLeased)
	b.held(r, "w1")
	require.JSONEq(b, `{"n":7}`, string(must(b.s.Input(b.ctx(), r.Job, r.GUID))(b)), "it is in the row (T4)")
	again := b.lease(r, "w1")
	require.Equal(b, []any{int64(2), 2}, []any{again.Fence, again.Runs}, "its own lease is no hindrance: the process was started again")
})

var _ = test("Lease", "many workers at once: one holds it (P17)", func(b *bench) {
	r, live := b.asked(), b.live().ID()
	held := atOnce(8, func(i int) string {
		if _, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, fmt.Sprint(i), live); b.won(err, store.ErrLeased) {
			return fmt.Sprint(i)
		}
		return ""
	})
	require.Equal(b, map[string]int{b.request(r.Job, "work").Holder: 1, "": 7}, held)
	b.held(r, b.request(r.Job, "work").Holder)
})

// It hands back what was handed over, of which no queue has the message, once as lost and once as what
// may have been answered.
var _ = test("Lease", "what may have been answered is looked for before it is sent again (T2)", func(b *bench) {
	r := b.asked()
	for looks, sent := range map[bool]int{false: 0, true: 1} {
		l := b.lease(r, fmt.Sprint(looks))
		b.rewrite(r, func(r *collation.Row, _ collation.Micros) { r.TurnSent = 0 })
		l.Looks = looks
		require.NoError(b, b.s.HandBack(b.ctx(), l))
		require.Equal(b, []int{1, sent}, []int{b.request(r.Job, "work").Turn, b.request(r.Job, "work").TurnSent})
	}
})

var _ = test("Lease", "a hand-back takes its run back (E9)", func(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	require.NoError(b, b.s.HandBack(b.ctx(), l))
	row := b.request(r.Job, "work")
	require.Equal(b, []any{0, "", int64(0)}, []any{row.Runs, row.Holder, row.Session})
	require.Len(b, b.due(10), 1, "due at once")
	_, _, err := b.s.StartEffect(b.ctx(), l, effect("pay", 0))
	require.ErrorIs(b, err, store.ErrStale, "its handler may go on")
	other := b.lease(r, "w2")
	require.Greater(b, other.Fence, l.Fence)
	require.Equal(b, 1, other.Runs)
	require.ErrorIs(b, b.s.HandBack(b.ctx(), l), store.ErrStale)
	other.Fence = 0 // a run that is handed back may not know its fence

	b.rewrite(r, func(r *collation.Row, _ collation.Micros) { r.Held = collation.HeldParked })
	row = b.request(r.Job, "work")
	require.NoError(b, b.s.HandBack(b.ctx(), other))
	after := b.request(r.Job, "work")
	require.Equal(b, []any{row.NextAt, 0, ""}, []any{after.NextAt, after.Runs, after.Holder}, "a held request leaves its due time")
})

var _ = test("Lease", "a run that goes on for long takes its lease once (E9)", func(b *bench) {
	r := b.asked()
	first := b.fresh(r, "w1")
	first.Space = b.space()
	want := first
	want.Fence, want.Runs, want.Fresh = 1, 1, false
	for _, l := range []store.Lease{first, want, first} { // the answer to the first was lost
		require.Equal(b, want, must(b.s.Keep(b.ctx(), l))(b))
		b.held(r, "w1")
	}
	knows := first
	knows.Fresh = false // a run that knows of its lease names its fence
	for _, l := range []store.Lease{b.fresh(r, "w2"), knows} {
		require.ErrorIs(b, failed(b.s.Keep(b.ctx(), l)), store.ErrStale)
	}
})

var _ = test("Lease", "a request of a closed job is not run (E9)", func(b *bench) {
	ill, done := b.requested(twoBranches, "k"), b.requested(oneWorker, "done")
	l := b.lease(b.request(ill, "right"), "w")
	tombstone := b.lease(b.request(done, "work"), "w")
	b.answer(ill, "left", failure(journal.ResponseTerminal, "declined"))
	b.finish(done, 1)
	b.expire(100)
	for _, l := range []store.Lease{l, tombstone} {
		require.ErrorIs(b, failed(b.s.Keep(b.ctx(), l)), store.ErrJobClosed)
		require.ErrorIs(b, b.s.HandBack(b.ctx(), l), store.ErrStale)
		b.unleased(
			collation.Row{Job: l.Job, GUID: l.Request, Request: collation.Request{Turn: 1}},
			store.ErrStale,
			store.ErrJobClosed,
		)
		_, _, err := b.s.StartEffect(b.ctx(), l, effect("pay", 0))
		requireOneOf(b, err, store.ErrStale, store.ErrJobClosed)
		requireOneOf(b, failed(b.s.Input(b.ctx(), l.Job, l.Request)), store.ErrStale, store.ErrNotFound)
	}
})

var _ = test("Lease", "what does not match turn, fence and holder is stale (E9)", func(b *bench) {
	r := b.asked()
	for _, spoil := range []func(*collation.Row){
		func(r *collation.Row) { r.Turn = 0 },
		func(r *collation.Row) { r.Turn = 2 },
		func(r *collation.Row) { r.GUID = guid(1) },
		func(r *collation.Row) { r.Job = journal.JobID{1} },
	} {
		wrong := r
		spoil(&wrong)
		b.unleased(wrong, store.ErrStale)
	}
	l := b.lease(r, "w")
	for _, spoil := range []func(*store.Lease){
		func(l *store.Lease) { l.Turn++ },
		func(l *store.Lease) { l.Fence-- },
		func(l *store.Lease) { l.Fence++ },
		func(l *store.Lease) { l.Request = guid(1) },
		func(l *store.Lease) { l.Holder = "another" },
	} {
		wrong := l
		spoil(&wrong)
		require.ErrorIs(b, failed(b.s.Keep(b.ctx(), wrong)), store.ErrStale)
		if wrong.Fence == l.Fence {
			require.ErrorIs(b, b.s.HandBack(b.ctx(), wrong), store.ErrStale)
		}
		_, _, err := b.s.StartEffect(b.ctx(), wrong, effect("pay", 0))
		require.ErrorIs(b, err, store.ErrStale)
	}
	b.held(r, "w")
	b.rewrite(r, func(r *collation.Row, _ collation.Micros) { r.Held = collation.HeldParked })
	b.unleased(r, store.ErrStale)
})

// exhausted runs a request until it may not run any more, and is held.
func (b *bench) exhausted() collation.Row {
	b.Helper()
	r := b.asked()
	for range store.MaxRuns {
		b.lease(r, "w")
	}
	require.ErrorIs(b, failed(b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w", b.live().ID())), store.ErrExhausted)
	return b.request(r.Job, "work")
}

var _ = test("Lease", "a request that ran too often is due, for an engine (E9)", func(b *bench) {
	r := b.asked()
	b.rewrite(r, func(r *collation.Row, _ collation.Micros) { r.Runs = store.MaxRuns })
	for range 2 {
		require.ErrorIs(b, failed(b.s.Store.Lease(b.ctx(), r.Job, r.GUID, 1, "w", b.live().ID())), store.ErrExhausted)
		due := b.due(10)
		require.Len(b, due, 1)
		require.Equal(b, store.MaxRuns+1, due[0].Runs)
	}
	row := b.request(r.Job, "work")
	require.Equal(b, []any{"", int64(0), r.Fence}, []any{row.Holder, row.Session, row.Fence})
})
