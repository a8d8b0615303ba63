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
	"a lease sets holder, fence and runs (E9)":          leaseTake,
	"another's live lease is handed back (E9)":          leaseOther,
	"a lease that is out is taken over (E9)":            leaseExpired,
	"many workers at once: one holds it (P17)":          leaseRace,
	"a hand-back takes its run back (E9)":               leaseHandBack,
	"a heartbeat extends lease and due time (E9, P21)":  leaseHeartbeat,
	"the first heartbeat of a run takes the lease (E9)": leaseFirstHeartbeat,
	"a heartbeat on a closed job says so (E9)":          leaseClosed,
	"what does not match turn and fence is stale (E9)":  leaseStale,
	"the input of a request is in its row (T4)":         leaseInput,
	"a parked request is not leased (C16)":              leaseParked,
}

// asked starts a job of flow one and gives its request's row.
func (b *bench) asked(c store.Committer) collation.Row {
	b.Helper()
	return b.row(b.requested(c, one, "k"), journal.MessageRequest, "work")
}

func (b *bench) lease(r collation.Row, holder string) store.Lease {
	b.Helper()
	l, err := b.s.Lease(b.ctx(), r.Job, r.GUID, r.Turn, holder, hour)
	require.NoError(b, err)
	return l
}

func leaseTake(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	space, err := b.s.Space(b.ctx())
	require.NoError(b, err)
	require.Equal(b, store.Lease{
		Job: r.Job, Request: r.GUID, Space: space, Generation: 1, Turn: 1, Holder: "w1", Fence: 1, Runs: 1,
	}, l)
	row := b.row(r.Job, journal.MessageRequest, "work")
	require.Equal(b, "w1", row.Holder)
	require.Equal(b, int64(1), row.Fence)
	require.Equal(b, 1, row.Runs)
	require.Greater(b, row.LeaseUntil, row.PublishedAt)
	again := b.lease(r, "w1")
	require.Equal(b, int64(2), again.Fence, "its own lease is no hindrance: the process was started again")
	require.Equal(b, 2, again.Runs)
	b.audit(r.Job)
}

func leaseOther(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w2", hour)
	require.ErrorIs(b, err, store.ErrLeased)
	row := b.row(r.Job, journal.MessageRequest, "work")
	require.Equal(b, l.Fence, row.Fence)
	require.Equal(b, 1, row.Runs)
}

func leaseExpired(b *bench) {
	r := b.asked(b.committer())
	old, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w1", b.span())
	require.NoError(b, err)
	until := b.row(r.Job, journal.MessageRequest, "work").LeaseUntil
	var l store.Lease
	b.eventually(func() bool {
		l, err = b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w2", hour)
		if err != nil {
			require.ErrorIs(b, err, store.ErrLeased)
		}
		return err == nil
	})
	require.Equal(b, old.Fence+1, l.Fence, "the fence rises")
	require.Equal(b, 2, l.Runs)
	require.Greater(b, b.row(r.Job, journal.MessageRequest, "work").LeaseUntil, until)
	_, err = b.s.Heartbeat(b.ctx(), old, hour)
	require.ErrorIs(b, err, store.ErrStale)
	require.ErrorIs(b, b.s.HandBack(b.ctx(), old), store.ErrStale)
	_, _, err = b.s.StartEffect(b.ctx(), old, effect("pay", 0))
	require.ErrorIs(b, err, store.ErrStale)
	_, err = b.s.Heartbeat(b.ctx(), l, hour)
	require.NoError(b, err)
}

func leaseRace(b *bench) {
	r := b.asked(b.committer())
	var mu sync.Mutex
	var held []store.Lease
	together(8, func(i int) {
		l, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, fmt.Sprint(i), hour)
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
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	require.NoError(b, b.s.HandBack(b.ctx(), l))
	row := b.row(r.Job, journal.MessageRequest, "work")
	require.Zero(b, row.Runs)
	require.Empty(b, row.Holder)
	require.Equal(b, collation.Never, row.LeaseUntil)
	require.Len(b, b.due(10), 1, "due at once")
	other := b.lease(r, "w2")
	require.Greater(b, other.Fence, l.Fence)
	require.Equal(b, 1, other.Runs)
	require.ErrorIs(b, b.s.HandBack(b.ctx(), l), store.ErrStale)
}

func leaseHeartbeat(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	before := b.row(r.Job, journal.MessageRequest, "work")
	next, err := b.s.Heartbeat(b.ctx(), l, 3*hour)
	require.NoError(b, err)
	require.Equal(b, l, next)
	row := b.row(r.Job, journal.MessageRequest, "work")
	require.GreaterOrEqual(b, row.LeaseUntil, before.LeaseUntil+micros(hour))
	require.Greater(b, row.NextAt, before.NextAt)
	require.GreaterOrEqual(b, row.NextAt, before.LeaseUntil+micros(hour), "nobody is asked again while it runs")
	require.Equal(b, 1, row.Runs)
}

func leaseFirstHeartbeat(b *bench) {
	r := b.asked(b.committer())
	first := store.Lease{Job: r.Job, Request: r.GUID, Generation: 1, Turn: 1, Holder: "w1"}
	second := first
	second.Holder = "w2"
	l, err := b.s.Heartbeat(b.ctx(), first, hour)
	require.NoError(b, err)
	require.Positive(b, l.Fence)
	require.Equal(b, "w1", b.row(r.Job, journal.MessageRequest, "work").Holder)
	_, err = b.s.Heartbeat(b.ctx(), second, hour)
	requireOneOf(b, err, store.ErrStale, store.ErrLeased)
	_, err = b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w2", hour)
	require.ErrorIs(b, err, store.ErrLeased)
	_, err = b.s.Heartbeat(b.ctx(), l, hour)
	require.NoError(b, err)
}

func leaseClosed(b *bench) {
	c := b.committer()
	id := b.requested(c, fork, "k")
	l := b.lease(b.row(id, journal.MessageRequest, "right"), "w")
	b.answer(c, id, "left", failure(journal.ResponseTerminal, "declined"))
	_, err := b.s.Heartbeat(b.ctx(), l, hour)
	require.ErrorIs(b, err, store.ErrJobClosed)
	_, err = b.s.Lease(b.ctx(), id, l.Request, 1, "w", hour)
	requireOneOf(b, err, store.ErrStale, store.ErrJobClosed)
	_, _, err = b.s.StartEffect(b.ctx(), l, effect("pay", 0))
	requireOneOf(b, err, store.ErrStale, store.ErrJobClosed)
	b.audit(id)
}

func leaseStale(b *bench) {
	r := b.asked(b.committer())
	for _, turn := range []int{0, 2} {
		_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, turn, "w", hour)
		require.ErrorIs(b, err, store.ErrStale, "turn %d", turn)
	}
	_, err := b.s.Lease(b.ctx(), r.Job, journal.GUID{1}, 1, "w", hour)
	require.ErrorIs(b, err, store.ErrStale)
	_, err = b.s.Lease(b.ctx(), journal.JobID{1}, r.GUID, 1, "w", hour)
	require.ErrorIs(b, err, store.ErrStale)
	l := b.lease(r, "w")
	for _, spoil := range []func(*store.Lease){
		func(l *store.Lease) { l.Turn++ },
		func(l *store.Lease) { l.Fence-- },
		func(l *store.Lease) { l.Fence++ },
		func(l *store.Lease) { l.Request = journal.GUID{1} },
	} {
		wrong := l
		spoil(&wrong)
		_, err := b.s.Heartbeat(b.ctx(), wrong, hour)
		require.ErrorIs(b, err, store.ErrStale)
		require.ErrorIs(b, b.s.HandBack(b.ctx(), wrong), store.ErrStale)
		_, _, err = b.s.StartEffect(b.ctx(), wrong, effect("pay", 0))
		require.ErrorIs(b, err, store.ErrStale)
	}
	require.Equal(b, 1, b.row(r.Job, journal.MessageRequest, "work").Runs)
}

func leaseInput(b *bench) {
	c := b.committer()
	r := b.asked(c)
	input, err := b.s.Input(b.ctx(), r.Job, r.GUID)
	require.NoError(b, err)
	require.JSONEq(b, `{"n":7}`, string(input))
	b.answer(c, r.Job, "work", success(`1`))
	_, err = b.s.Input(b.ctx(), r.Job, r.GUID)
	requireOneOf(b, err, store.ErrStale, store.ErrNotFound)
}

func leaseParked(b *bench) {
	c := b.committer()
	r := b.asked(c)
	b.answer(c, r.Job, "work", failure(journal.ResponseParked, "unknown outcome"))
	row := b.row(r.Job, journal.MessageRequest, "work")
	_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, row.Turn, "w", hour)
	require.ErrorIs(b, err, store.ErrStale)
}
