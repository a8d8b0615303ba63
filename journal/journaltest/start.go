package journaltest

import (
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var starts = cases{
	"inception is one transaction, and its key names it (1.11)": startNew,
	"a start begins at the later of its times":                  startDelayed,
	"an inception names what it was lost to (W3)":               startLost,
	"one of many starters at once begins it (1.11)":             startRace,
}

func startNew(b *bench) {
	f := b.deploy(one)
	id := b.start(f, "k")
	require.Equal(b, collation.NewJobID(b.space(), "k", 1), id, "C8")
	require.Equal(b, id, got(b.s.FindJob(b.ctx(), "k"))(b))
	v := b.view(id)
	require.Equal(b, collation.Job{
		ID: id, Space: b.space(), Key: "k", Generation: 1, Flow: ref(f), State: journal.JobOpen, Semaphore: 1,
		Head: v.Head, Started: v.Started, Trace: starting(f, "", "").Trace,
	}, v.Job)
	require.Equal(b, int64(1), v.Head.Seq)
	require.Positive(b, v.Started)
	require.Equal(b, []any{collation.Micros(0), false, collation.Never}, []any{v.Closed, v.Ended, v.ExpiresAt})
	require.Equal(b, []store.InstanceView{{
		Key:      collation.InstanceKey{Activity: "start", DAD: collation.RootDAD},
		Instance: collation.Instance{Ledger: collation.TriggerBorn, ResultSeq: 1, Code: collation.CodeOK},
	}}, v.Instances, "the trigger's output is the job's input")
	require.Len(b, v.Rows, 1)
	require.Equal(b, id.Start(), v.Rows[0].GUID)
	require.Equal(b, map[string]*collation.Holder{
		"k": {ID: id, Generation: 1, State: journal.JobOpen, Flow: ref(f), Input: []byte(`{"n":7}`)},
	}, b.look(store.Want{Key: "k"}, store.Want{Key: "nobody"}).Holders)
	require.Equal(b, map[string]journal.JobID{"k": id, "nobody": {}}, b.more(id, collation.Need{Keys: []string{"k", "nobody"}}).Keys)
}

func startDelayed(b *bench) {
	later := starting(b.deploy(one), "later", `{}`)
	later.Delay = time.Hour
	past := starting(b.deploy(one), "past", `{}`)
	past.At = 1
	out := got(b.s.Start(b.ctx(), []store.Start{later, past}, b.mode))(b)
	for i, delay := range []collation.Micros{micros(time.Hour), 0} {
		v := b.view(out[i].Job)
		require.Equal(b, v.Started+delay, v.Rows[0].NextAt)
	}
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
	for _, c := range []struct{ plans, keys, flows any }{
		{[]store.Chained{begin(active), begin(starting(f, "held", `{}`)), begin(starting(f, "free", `{}`))}, []string{"held"}, []string(nil)},
		{[]store.Chained{begin(active), begin(other)}, []string(nil), []string{f.Name()}},
	} {
		var lost *store.LostError
		err := b.c.Commit(b.ctx(), c.plans.([]store.Chained))
		require.ErrorAs(b, err, &lost)
		require.ErrorIs(b, err, store.ErrLost)
		require.Equal(b, []any{c.keys, c.flows}, []any{lost.Keys, lost.Flows})
	}
	require.Equal(b, map[journal.JobState]int64{journal.JobOpen: 1}, got(b.s.Counts(b.ctx()))(b))
	require.NoError(b, b.commit(begin(active)), "the connection goes on")
}

func startRace(b *bench) {
	f := b.deploy(one)
	const starters, keys = 8, 5
	var mu sync.Mutex
	born, ids := 0, map[journal.JobID]bool{}
	together(starters, func(i int) {
		var list []store.Start
		for k := range keys { // in different orders, so that starters could deadlock
			list = append(list, starting(f, fmt.Sprint((k+i)%keys), `{"n":7}`))
		}
		out, err := b.s.Start(b.ctx(), list, b.mode)
		b.check(err)
		mu.Lock()
		defer mu.Unlock()
		for _, o := range out {
			if ids[o.Job] = true; o.Err == nil {
				born++
			}
		}
	})
	require.Equal(b, keys, born, "each key begins once")
	require.Len(b, ids, keys)
}
