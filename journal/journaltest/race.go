package journaltest

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var races = cases{
	"many holders of one message: one handles it (P9, C7)": raceHolders,
	"two answers to one request: one is recorded (P5)":     raceAnswers,
	"branches of one job at once (C13, I4)":                raceBranches,
	"a lease and a commit: one wins (E7, J8)":              raceLease,
	"the sweeper passes over rows that are being decided":  raceClaim,
}

// everybody lets n committers handle a message at once, and counts outcomes.
func (b *bench) everybody(n int, of func(i int) *collation.Message) map[collation.Outcome]int {
	b.Helper()
	var mu sync.Mutex
	outcomes := map[collation.Outcome]int{}
	committers := make([]store.Committer, n)
	for i := range committers {
		committers[i] = b.committer()
	}
	together(n, func(i int) {
		p, err := b.handle(committers[i], of(i))
		if err != nil {
			b.Errorf("holder %d: %v", i, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		outcomes[p.Outcome]++
	})
	return outcomes
}

// raceHolders: stepwise a start is two plans, and different holders may do them, but no step is
// done twice.
func raceHolders(b *bench) {
	b.mode.Stepwise = true
	id := b.jobs(1)[0]
	row := b.view(id).Rows[0]
	n := b.everybody(8, func(int) *collation.Message { return Message(&row) })
	require.NotZero(b, n[collation.Handled])
	require.Equal(b, 8, n[collation.Handled]+n[collation.Settled]+n[collation.Unlicensed])
	v := b.view(id)
	require.Len(b, v.Rows, 1)
	require.Equal(b, int64(1), v.Semaphore)
}

func raceAnswers(b *bench) {
	r := b.asked()
	outcomes := b.everybody(8, func(i int) *collation.Message { return Response(&r, success(fmt.Sprint(i))) })
	require.Equal(b, map[collation.Outcome]int{collation.Handled: 1, collation.Settled: 7}, outcomes)
	v := b.view(r.Job)
	require.Equal(b, journal.JobCompleted, v.State)
	require.Equal(b, "201100000000001", v.Instances[1].Ledger.String())
}

func raceBranches(b *bench) {
	for i := range 5 {
		id := b.requested(fork, fmt.Sprint(i))
		branches := []collation.Row{b.request(id, "left"), b.request(id, "right")}
		n := b.everybody(2, func(i int) *collation.Message { return Response(&branches[i], success(`1`)) })
		require.Equal(b, 2, n[collation.Handled])
		b.run(id)
		b.answer(id, "next", success(`3`))
		require.Equal(b, journal.JobCompleted, b.view(id).State)
	}
}

// raceLease lets a worker lease a request while its answer is being decided. Either the lease
// waits for the commit and learns that the turn was answered, or the commit loses to the lease.
func raceLease(b *bench) {
	r := b.asked()
	m := Response(&r, failure(journal.ResponseFailedAttempt, "no"))
	ch := got(b.decide(b.c, got(b.load(b.c, m))(b).States[r.Job], m))(b)
	leased, live := make(chan error, 1), b.live().ID()
	go func() {
		_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, r.Turn, "w", live)
		leased <- err
	}()
	committed, err := b.commit(ch), <-leased
	if turn := b.request(r.Job, "work").Turn; committed == nil {
		require.ErrorIs(b, err, store.ErrStale)
		require.Equal(b, 2, turn)
	} else {
		require.ErrorIs(b, committed, store.ErrLost)
		require.NoError(b, err)
		require.Equal(b, 1, turn)
	}
}

func raceClaim(b *bench) {
	ids := b.jobs(2)
	due := b.due(10)
	require.Len(b, due, 2, "listing takes no lock")
	b.locked(b.c, store.Want{Job: ids[0], Row: ids[0].Start()})
	for _, id := range []journal.JobID{ids[1], ids[0]} {
		out := got(b.s.Claim(b.ctx(), claims(due, true)))(b)
		require.Len(b, out, 1)
		require.Equal(b, id, out[0].Row.Job)
		require.NoError(b, b.c.Rollback(b.ctx()))
	}
}
