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
	"the caller's publication is counted (T2)":      startPublished,
	"a key that exists is refused (1.11)":           startAgain,
	"a closed job keeps its key (1.11)":             startAfterClose,
	"equal keys within one call are one job (J6)":   startTwins,
	"many jobs are one call (J6)":                   startMany,
	"more than the limit is refused whole (T11)":    startTooMany,
	"one of many starters at once begins it (1.11)": startRace,
	"an unknown key or job is not found":            startUnknown,
}

func startNew(b *bench) {
	f := b.deploy(one)
	out, err := b.s.Start(b.ctx(), []store.Start{request(f, "k", `{"n":7}`)}, b.mode)
	require.NoError(b, err)
	id := out[0].Job
	space, err := b.s.Space(b.ctx())
	require.NoError(b, err)
	require.Equal(b, collation.NewJobID(space, "k", 1), id, "C8")
	found, err := b.s.FindJob(b.ctx(), "k")
	require.NoError(b, err)
	require.Equal(b, id, found)

	v := b.view(id)
	require.Equal(b, journal.JobOpen, v.State)
	require.Equal(b, int64(1), v.Semaphore, "C13")
	require.Equal(b, int64(1), v.Head.Seq)
	require.Equal(b, int64(1), v.Generation)
	require.Equal(b, ref(f), v.Flow)
	require.Equal(b, request(f, "", "").Trace, v.Trace)
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

	row := out[0].Row
	require.Equal(b, v.Rows[0], row.Row)
	require.Equal(b, "k", row.JobKey)
	require.Equal(b, int64(1), row.Generation)
	require.Equal(b, ref(f), row.Flow)
	require.Equal(b, v.Trace, row.Trace)
	b.audit(id)
}

func startPublished(b *bench) {
	f := b.deploy(one)
	st := request(f, "k", `{}`)
	st.Publish = true
	out, err := b.s.Start(b.ctx(), []store.Start{st}, b.mode)
	require.NoError(b, err)
	row := b.view(out[0].Job).Rows[0]
	require.Equal(b, 1, row.Publication)
	require.Equal(b, row.PublishedAt+b.mode.Resend, row.NextAt)
	due, _, err := b.s.Due(b.ctx(), 10)
	require.NoError(b, err)
	require.Empty(b, due, "the caller sends it; the sweeper looks again later")
}

func startAgain(b *bench) {
	f, g := b.deploy(one), b.deploy(fork)
	id := b.start(f, "k")
	before := b.view(id)
	for _, c := range []struct {
		start               store.Start
		sameFlow, sameInput bool
	}{
		{request(f, "k", `{"n":7}`), true, true},
		{request(f, "k", `{"n":8}`), true, false},
		{request(g, "k", `{"n":7}`), false, true},
		{request(g, "k", `{}`), false, false},
	} {
		out, err := b.s.Start(b.ctx(), []store.Start{c.start}, b.mode)
		require.NoError(b, err)
		require.Nil(b, out[0].Row)
		require.Equal(b, id, out[0].Job)
		var again *store.AlreadyStartedError
		require.ErrorAs(b, out[0].Err, &again)
		require.Equal(b, &store.AlreadyStartedError{Job: id, Key: "k", SameFlow: c.sameFlow, SameInput: c.sameInput}, again)
	}
	require.Equal(b, before, b.view(id), "nothing is written")
}

func startAfterClose(b *bench) {
	c := b.committer()
	id := b.requested(c, one, "k")
	b.answer(c, id, "work", success(`{}`))
	require.Equal(b, journal.JobCompleted, b.view(id).State)
	out, err := b.s.Start(b.ctx(), []store.Start{request(b.deploy(one), "k", `{"n":7}`)}, b.mode)
	require.NoError(b, err)
	var again *store.AlreadyStartedError
	require.ErrorAs(b, out[0].Err, &again)
	require.Equal(b, id, again.Job)
}

func startTwins(b *bench) {
	f := b.deploy(one)
	out, err := b.s.Start(b.ctx(), []store.Start{
		request(f, "b", `{"n":1}`), request(f, "a", `{}`), request(f, "b", `{"n":1}`), request(f, "b", `{"n":2}`),
	}, b.mode)
	require.NoError(b, err)
	require.Len(b, out, 4)
	require.NotNil(b, out[0].Row)
	require.NotNil(b, out[1].Row)
	require.NotEqual(b, out[0].Job, out[1].Job)
	for i, sameInput := range map[int]bool{2: true, 3: false} {
		require.Nil(b, out[i].Row)
		require.Equal(b, out[0].Job, out[i].Job)
		var again *store.AlreadyStartedError
		require.ErrorAs(b, out[i].Err, &again)
		require.Equal(b, sameInput, again.SameInput)
	}
	b.audit(out[0].Job, out[1].Job)
}

func startMany(b *bench) {
	f := b.deploy(one)
	for _, n := range []int{1, 2, 17, 100, store.MaxStarts} {
		var list []store.Start
		for i := range n {
			list = append(list, request(f, fmt.Sprintf("%d of %d", i, n), fmt.Sprintf(`{"n":%d}`, i)))
		}
		out, err := b.s.Start(b.ctx(), list, b.mode)
		require.NoError(b, err)
		require.Len(b, out, n)
		for i, o := range out {
			require.NoError(b, o.Err)
			require.Equal(b, list[i].Key, o.Row.JobKey, "the results are in the order of the starts")
			require.Equal(b, o.Job.Start(), o.Row.Row.GUID)
		}
		b.audit(out[0].Job, out[n-1].Job)
	}
	out, err := b.s.Start(b.ctx(), nil, b.mode)
	require.NoError(b, err)
	require.Empty(b, out)
}

func startTooMany(b *bench) {
	f := b.deploy(one)
	var list []store.Start
	for i := range store.MaxStarts + 1 {
		list = append(list, request(f, fmt.Sprint(i), `{}`))
	}
	_, err := b.s.Start(b.ctx(), list, b.mode)
	require.Error(b, err)
	counts, err := b.s.Counts(b.ctx())
	require.NoError(b, err)
	require.Zero(b, counts[journal.JobOpen])
}

func startRace(b *bench) {
	f := b.deploy(one)
	const starters, keys = 8, 5
	var born atomic.Int64
	var mu sync.Mutex
	ids := map[string]map[journal.JobID]bool{}
	together(starters, func(i int) {
		var list []store.Start
		for k := range keys { // in different orders, so that starters could wait for each other
			list = append(list, request(f, fmt.Sprint((k+i)%keys), `{"n":7}`))
		}
		out, err := b.s.Start(b.ctx(), list, b.mode)
		if err != nil {
			b.Errorf("start: %v", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for n, o := range out {
			if o.Row != nil {
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
		for id := range jobs {
			b.audit(id)
		}
	}
}

func startUnknown(b *bench) {
	_, err := b.s.FindJob(b.ctx(), "nobody")
	require.ErrorIs(b, err, store.ErrNotFound)
	_, err = b.s.Job(b.ctx(), journal.JobID{1})
	require.ErrorIs(b, err, store.ErrNotFound)
	ended, err := b.s.Ended(b.ctx(), []journal.JobID{{1}})
	require.NoError(b, err)
	require.Empty(b, ended)
}
