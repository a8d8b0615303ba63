package journaltest

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var races = map[string]func(*bench){
	"a decision on old state is lost (C3)":                 raceOld,
	"many holders of one message: one handles it (P9, C7)": raceHolders,
	"two answers to one request: one is recorded (P5)":     raceAnswers,
	"branches of one job at once (C13, I4)":                raceBranches,
	"a lease and a commit: one wins (E7, J8)":              raceLease,
	"the sweeper passes over rows that are being decided":  raceClaim,
}

// raceOld decides a message twice from the same state and commits both.
func raceOld(b *bench) {
	id := b.requested(one, "k")
	r := b.request(id, "work")
	l := got(b.load(b.c, response(&r, success(`1`))))(b)
	first := got(b.decide(b.c, l.States[id], response(&r, success(`1`))))(b)
	require.NoError(b, b.c.Rollback(b.ctx()))
	b.must(response(&r, success(`2`)))
	got(b.load(b.c, response(&r, nil)))(b)
	require.ErrorIs(b, b.c.Commit(b.ctx(), []store.Chained{first}), store.ErrLost)
	v := b.view(id)
	require.JSONEq(b, `{"got":2}`, string(v.Output))
	require.Equal(b, "201100000000001", v.Instances[1].Ledger.String())
}

func raceHolders(b *bench) {
	b.mode.Stepwise = true
	id := b.start(b.deploy(one), "k")
	row := b.view(id).Rows[0]
	outcomes := b.everybody(8, func(int) *collation.Message { return message(&row) })
	// Stepwise a start is two plans, and different holders may do them, but no step is done
	// twice.
	require.NotZero(b, outcomes[collation.Handled])
	require.Equal(b, 8, outcomes[collation.Handled]+outcomes[collation.Settled]+outcomes[collation.Unlicensed])
	require.Len(b, b.view(id).Rows, 1)
	require.Equal(b, int64(1), b.view(id).Semaphore)
}

// everybody lets n committers handle a message at once, and counts outcomes.
func (b *bench) everybody(n int, of func(i int) *collation.Message) map[collation.Outcome]int {
	b.Helper()
	var mu sync.Mutex
	outcomes := map[collation.Outcome]int{}
	var committers []store.Committer
	for range n {
		committers = append(committers, b.committer())
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

func raceAnswers(b *bench) {
	id := b.requested(one, "k")
	r := b.request(id, "work")
	outcomes := b.everybody(8, func(i int) *collation.Message { return response(&r, success(fmt.Sprint(i))) })
	require.Equal(b, map[collation.Outcome]int{collation.Handled: 1, collation.Settled: 7}, outcomes)
	v := b.view(id)
	require.Equal(b, journal.JobCompleted, v.State)
	require.Equal(b, "201100000000001", v.Instances[1].Ledger.String())
}

func raceBranches(b *bench) {
	d := b.committer()
	for i := range 5 {
		id := b.requested(fork, fmt.Sprint(i))
		left, right := b.request(id, "left"), b.request(id, "right")
		together(2, func(n int) {
			m, with := response(&left, success(`1`)), b.c
			if n == 1 {
				m, with = response(&right, success(`2`)), d
			}
			if p, err := b.handle(with, m); err != nil || p.Outcome != collation.Handled {
				b.Errorf("branch %d: %v", n, err)
			}
		})
		b.run(id)
		b.answer(id, "next", success(`3`))
		require.Equal(b, journal.JobCompleted, b.view(id).State)
	}
}

// raceLease lets a worker lease a request while its answer is being decided. Either the lease
// waits for the commit and learns that the turn was answered, or the commit loses to the lease.
func raceLease(b *bench) {
	id := b.requested(one, "k")
	r := b.request(id, "work")
	m := response(&r, failure(journal.ResponseFailedAttempt, "no"))
	l := got(b.load(b.c, m))(b)
	ch := got(b.decide(b.c, l.States[id], m))(b)
	leased, live := make(chan error, 1), b.live().ID()
	go func() {
		_, err := b.s.Lease(b.ctx(), id, r.GUID, r.Turn, "w", live)
		leased <- err
	}()
	committed := b.c.Commit(b.ctx(), []store.Chained{ch})
	if err := <-leased; committed == nil {
		require.ErrorIs(b, err, store.ErrStale)
		require.Equal(b, 2, b.request(id, "work").Turn)
	} else {
		require.ErrorIs(b, committed, store.ErrLost)
		require.NoError(b, err)
		require.Equal(b, 1, b.request(id, "work").Turn)
	}
}

func raceClaim(b *bench) {
	f := b.deploy(one)
	held, free := b.start(f, "held"), b.start(f, "free")
	due, _, err := b.s.Due(b.ctx(), 10)
	require.NoError(b, err)
	require.Len(b, due, 2, "listing takes no lock")
	b.locked(b.c, store.Want{Job: held, Row: held.Start()})
	out := got(b.s.Claim(b.ctx(), claims(due, true)))(b)
	require.Len(b, out, 1)
	require.Equal(b, free, out[0].Row.Job)
	require.NoError(b, b.c.Rollback(b.ctx()))
	out = got(b.s.Claim(b.ctx(), claims(due, true)))(b)
	require.Len(b, out, 1)
	require.Equal(b, held, out[0].Row.Job)
}
