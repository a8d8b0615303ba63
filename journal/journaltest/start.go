package journaltest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var starts = map[string]func(*bench){
	"inception is one transaction (1.11)":           startNew,
	"a key that exists is refused (1.11)":           startAgain,
	"an inception names what it was lost to (W3)":   startLost,
	"one of many starters at once begins it (1.11)": startRace,
	"an unknown key or job is not found":            startUnknown,
}

func startNew(b *bench) {
	f := b.deploy(one)
	out := got(b.s.Start(b.ctx(), []store.Start{starting(f, "k", `{"n":7}`)}, b.mode))(b)
	id := out[0].Job
	space := got(b.s.Space(b.ctx()))(b)
	require.Equal(b, collation.NewJobID(space, "k", 1), id, "C8")
	found := got(b.s.FindJob(b.ctx(), "k"))(b)
	require.Equal(b, id, found)

	v := b.view(id)
	require.Equal(b, journal.JobOpen, v.State)
	require.Equal(b, int64(1), v.Semaphore, "C13")
	require.Equal(b, int64(1), v.Head.Seq)
	require.Equal(b, int64(1), v.Generation)
	require.Equal(b, ref(f), v.Flow)
	require.Equal(b, starting(f, "", "").Trace, v.Trace)
	require.Positive(b, v.Started)
	require.Zero(b, v.Closed)
	require.False(b, v.Ended)
	require.Len(b, v.Instances, 1)
	require.Equal(b, collation.TriggerBorn, v.Instances[0].Ledger)
	require.Equal(b, int64(1), v.Instances[0].ResultSeq, "the trigger's output is the job's input")
	require.Len(b, v.Rows, 1)
	require.Equal(b, id.Start(), v.Rows[0].GUID)
	require.Equal(b, journal.MessageStart, v.Rows[0].Kind)
	require.Zero(b, v.Rows[0].Publication)
	require.Positive(b, v.Rows[0].NextAt)

}

func startAgain(b *bench) {
	f, g := b.deploy(one), b.deploy(fork)
	id := b.start(f, "k")
	before := b.view(id)
	for _, c := range []struct {
		start               store.Start
		sameFlow, sameInput bool
	}{
		{starting(f, "k", `{"n":7}`), true, true},
		{starting(f, "k", `{"n":8}`), true, false},
		{starting(g, "k", `{"n":7}`), false, true},
		{starting(g, "k", `{}`), false, false},
	} {
		out := got(b.s.Start(b.ctx(), []store.Start{c.start}, b.mode))(b)
		require.Equal(b, id, out[0].Job)
		var again *store.AlreadyStartedError
		require.ErrorAs(b, out[0].Err, &again)
		require.Equal(b, &store.AlreadyStartedError{Job: id, Key: "k", SameFlow: c.sameFlow, SameInput: c.sameInput}, again)
	}
	require.Equal(b, before, b.view(id), "nothing is written")
}

// startLost: several inceptions commit together without a look before. Those that lose a
// test-and-set are named, and nothing of the others is left.
func startLost(b *bench) {
	f := b.deploy(one)
	b.start(f, "held")
	begin := func(st store.Start) store.Chained {
		return chain(collation.Begin(st.Inception(b.space(), 1), nil, b.mode))
	}
	other := starting(f, "other", `{}`)
	other.Flow.Version, other.Active = "0", true
	active := starting(f, "active", `{}`)
	active.Active = true
	var lost *store.LostError
	err := b.c.Commit(b.ctx(), []store.Chained{begin(active), begin(starting(f, "held", `{}`)), begin(starting(f, "free", `{}`))})
	require.ErrorAs(b, err, &lost)
	require.ErrorIs(b, err, store.ErrLost)
	require.Equal(b, []string{"held"}, lost.Keys)
	require.Empty(b, lost.Flows)
	err = b.c.Commit(b.ctx(), []store.Chained{begin(active), begin(other)})
	require.ErrorAs(b, err, &lost)
	require.Equal(b, []string{other.Flow.Name}, lost.Flows)
	require.Empty(b, lost.Keys)
	counts := got(b.s.Counts(b.ctx()))(b)
	require.Equal(b, map[journal.JobState]int64{journal.JobOpen: 1}, counts)
	require.NoError(b, b.c.Commit(b.ctx(), []store.Chained{begin(active)}), "the connection goes on")
}

func startRace(b *bench) {
	f := b.deploy(one)
	const starters, keys = 8, 5
	var born atomic.Int64
	var mu sync.Mutex
	ids := map[string]map[journal.JobID]bool{}
	together(starters, func(i int) {
		var list []store.Start
		for k := range keys { // in different orders, so that starters could deadlock
			list = append(list, starting(f, fmt.Sprint((k+i)%keys), `{"n":7}`))
		}
		out, err := b.s.Start(b.ctx(), list, b.mode)
		if err != nil {
			b.Errorf("start: %v", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for n, o := range out {
			if o.Err == nil {
				born.Add(1)
			}
			if ids[list[n].Key] == nil {
				ids[list[n].Key] = map[journal.JobID]bool{}
			}
			ids[list[n].Key][o.Job] = true
		}
	})
	require.Equal(b, int64(keys), born.Load(), "each key begins once")
	for key, jobs := range ids {
		require.Len(b, jobs, 1, "key %s", key)
	}
}

func startUnknown(b *bench) {
	_, err := b.s.FindJob(b.ctx(), "nobody")
	require.ErrorIs(b, err, store.ErrNotFound)
	_, err = b.s.Job(b.ctx(), journal.JobID{1})
	require.ErrorIs(b, err, store.ErrNotFound)
	ended := got(b.s.Ended(b.ctx(), []journal.JobID{{1}}))(b)
	require.Empty(b, ended)
}
