package journaltest

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var leases = map[string]func(*bench){
	"a lease sets holder, session, fence and runs (E9, W8)":    leaseTake,
	"another's lease is respected (E9)":                        leaseOther,
	"what an ended session held is taken over (E9, W8)":        leaseEnded,
	"many workers at once: one holds it (P17)":                 leaseRace,
	"a hand-back takes its run back (E9)":                      leaseHandBack,
	"a run that goes on for long takes its lease once (E9)":    leaseKeep,
	"to keep a request of a closed job says so (E9)":           leaseClosed,
	"what does not match turn, fence and holder is stale (E9)": leaseStale,
	"the input of a request is in its row (T4)":                leaseInput,
	"a parked request is not leased (C16)":                     leaseParked,
}

// asked starts a job of flow one and returns its request's row.
func (b *bench) asked() collation.Row {
	b.Helper()
	return b.request(b.requested(one, "k"), "work")
}

func (b *bench) lease(r collation.Row, holder string) store.Lease {
	b.Helper()
	return b.leaseFor(r, holder, b.live())
}

// leaseFor is lease for a run of another process.
func (b *bench) leaseFor(r collation.Row, holder string, of store.Session) store.Lease {
	b.Helper()
	l := got(b.s.Lease(b.ctx(), r.Job, r.GUID, r.Turn, holder, of.ID()))(b)
	return l
}

func leaseTake(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	space := got(b.s.Space(b.ctx()))(b)
	require.Equal(b, store.Lease{
		Job: r.Job, Request: r.GUID, Space: space, Generation: 1, Turn: 1, Holder: "w1", Session: b.live().ID(), Fence: 1, Runs: 1,
	}, l)
	row := b.request(r.Job, "work")
	require.Equal(b, "w1", row.Holder)
	require.Equal(b, int64(1), row.Fence)
	require.Equal(b, 1, row.Runs)
	require.Equal(b, b.live().ID(), row.Session)
	require.Equal(b, collation.Never, row.NextAt, "nobody else is asked as long as it lasts (P21)")
	again := b.lease(r, "w1")
	require.Equal(b, int64(2), again.Fence, "its own lease is no hindrance: the process was started again")
	require.Equal(b, 2, again.Runs)
}

func leaseOther(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w2", b.live().ID())
	require.ErrorIs(b, err, store.ErrLeased)
	row := b.request(r.Job, "work")
	require.Equal(b, l.Fence, row.Fence)
	require.Equal(b, 1, row.Runs)
}

func leaseEnded(b *bench) {
	r := b.asked()
	old := b.leaseFor(r, "w1", b.session("dies", b.span()))
	b.letDie("dies")
	l := b.lease(r, "w2")
	require.Equal(b, old.Fence+2, l.Fence, "one by the end, one by the new run")
	require.Equal(b, 2, l.Runs)
	_, err := b.s.Keep(b.ctx(), old)
	require.ErrorIs(b, err, store.ErrStale)
	require.ErrorIs(b, b.s.HandBack(b.ctx(), old), store.ErrStale)
	_, _, err = b.s.StartEffect(b.ctx(), old, effect("pay", 0))
	require.ErrorIs(b, err, store.ErrStale)
	got(b.s.Keep(b.ctx(), l))(b)
}

func leaseRace(b *bench) {
	r := b.asked()
	var mu sync.Mutex
	var held []store.Lease
	live := b.live().ID()
	together(8, func(i int) {
		l, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, fmt.Sprint(i), live)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			held = append(held, l)
			return
		}
		requireOneOf(b, err, store.ErrLeased)
	})
	require.Len(b, held, 1)
	require.Equal(b, int64(1), held[0].Fence)
}

func leaseHandBack(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	require.NoError(b, b.s.HandBack(b.ctx(), l))
	row := b.request(r.Job, "work")
	require.Zero(b, row.Runs)
	require.Empty(b, row.Holder)
	require.Zero(b, row.Session)
	require.Len(b, b.due(10), 1, "due at once")
	other := b.lease(r, "w2")
	require.Greater(b, other.Fence, l.Fence)
	require.Equal(b, 1, other.Runs)
	require.ErrorIs(b, b.s.HandBack(b.ctx(), l), store.ErrStale)
}

func leaseKeep(b *bench) {
	r := b.asked()
	first := b.fresh(r, "w1")
	first.Space = b.space()
	l := got(b.s.Keep(b.ctx(), first))(b)
	want := first
	want.Fence, want.Runs, want.Fresh = 1, 1, false
	require.Equal(b, want, l)
	b.held(r, "w1", 1)
	_, err := b.s.Keep(b.ctx(), b.fresh(r, "w2"))
	require.ErrorIs(b, err, store.ErrStale)
	for _, l := range []store.Lease{l, first} { // first: its answer was lost
		again := got(b.s.Keep(b.ctx(), l))(b)
		require.Equal(b, want, again)
		b.held(r, "w1", 1)
	}
}

func leaseClosed(b *bench) {
	id := b.requested(fork, "k")
	l := b.lease(b.request(id, "right"), "w")
	b.answer(id, "left", failure(journal.ResponseTerminal, "declined"))
	_, err := b.s.Keep(b.ctx(), l)
	require.ErrorIs(b, err, store.ErrJobClosed)
	_, err = b.s.Lease(b.ctx(), id, l.Request, 1, "w", b.live().ID())
	requireOneOf(b, err, store.ErrStale, store.ErrJobClosed)
	_, _, err = b.s.StartEffect(b.ctx(), l, effect("pay", 0))
	requireOneOf(b, err, store.ErrStale, store.ErrJobClosed)
}

func leaseStale(b *bench) {
	r := b.asked()
	for _, turn := range []int{0, 2} {
		_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, turn, "w", b.live().ID())
		require.ErrorIs(b, err, store.ErrStale, "turn %d", turn)
	}
	_, err := b.s.Lease(b.ctx(), r.Job, journal.GUID{1}, 1, "w", b.live().ID())
	require.ErrorIs(b, err, store.ErrStale)
	_, err = b.s.Lease(b.ctx(), journal.JobID{1}, r.GUID, 1, "w", b.live().ID())
	require.ErrorIs(b, err, store.ErrStale)
	l := b.lease(r, "w")
	for _, spoil := range []func(*store.Lease){
		func(l *store.Lease) { l.Turn++ },
		func(l *store.Lease) { l.Fence-- },
		func(l *store.Lease) { l.Fence++ },
		func(l *store.Lease) { l.Request = journal.GUID{1} },
		func(l *store.Lease) { l.Holder = "another" },
	} {
		wrong := l
		spoil(&wrong)
		_, err := b.s.Keep(b.ctx(), wrong)
		require.ErrorIs(b, err, store.ErrStale)
		if wrong.Fence == l.Fence { // a run that is handed back may not know its fence
			require.ErrorIs(b, b.s.HandBack(b.ctx(), wrong), store.ErrStale)
		}
		_, _, err = b.s.StartEffect(b.ctx(), wrong, effect("pay", 0))
		require.ErrorIs(b, err, store.ErrStale)
	}
	require.Equal(b, 1, b.request(r.Job, "work").Runs)
	l.Fence = 0
	require.NoError(b, b.s.HandBack(b.ctx(), l), "its holder says enough")
}

func leaseInput(b *bench) {
	r := b.asked()
	input := got(b.s.Input(b.ctx(), r.Job, r.GUID))(b)
	require.JSONEq(b, `{"n":7}`, string(input))
	b.answer(r.Job, "work", success(`1`))
	_, err := b.s.Input(b.ctx(), r.Job, r.GUID)
	requireOneOf(b, err, store.ErrStale, store.ErrNotFound)
}

func leaseParked(b *bench) {
	r := b.asked()
	b.answer(r.Job, "work", failure(journal.ResponseParked, "unknown outcome"))
	row := b.request(r.Job, "work")
	_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, row.Turn, "w", b.live().ID())
	require.ErrorIs(b, err, store.ErrStale)
}
