package postgres

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/cut"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

// orderChild commits a plan of the parent that orders a child, and returns its row.
func orderChild(t testing.TB, c store.Committer, parent journal.JobID) collation.Row {
	t.Helper()
	st := load(t, c, store.Want{Job: parent})
	p := plan(st)
	leg1 := collation.Leg1GUID(parent.Start(), "child", ",0,0")
	child := collation.ChildID(leg1, int(p.Entry.Seq))
	body := must(json.Marshal(&collation.StartOrder{
		Flow: testFlow.Name, Key: child.String(), Input: []byte(`{}`),
		Parent: journal.Parent{
			Space: st.Job.Space, Job: parent, Activity: "child", DAD: ",0,0", Leg1: leg1, Turn: 1, Awaited: true, Depth: 1,
		},
	}))(t)
	row := collation.Row{
		GUID: child.Start(), Job: child, Kind: journal.MessageStart, DAD: collation.RootDAD, Body: body,
		NextAt: st.Now, Origin: p.Entry.Seq, Sender: parent,
	}
	p.Insert = []collation.Row{row}
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, p)}))
	return row
}

func spawnOf(row *collation.Row) store.Start {
	return store.Start{Flow: testFlow, Trigger: "start", Key: row.Job.String(), Input: []byte(`{}`)}
}

// C15: the close of a parent locks the starts that it cancels. An inception of the child waits
// for it, and then is too late or goes on.
func TestC15InceptionWaitsForTheClose(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	for _, closes := range []bool{true, false} {
		row := orderChild(t, c, id)
		st := load(t, c, store.Want{Job: id})
		require.NoError(t, c.More(t.Context(), map[journal.JobID]*collation.Need{id: {AllRows: true}}))
		require.Equal(t, &row, st.Rows[row.GUID])
		spawned := make(chan error, 1)
		go func() { spawned <- s.driven().Spawn(t.Context(), &row, spawnOf(&row), collation.Mode{}) }()
		waitFor(t, s, someoneWaits)
		if closes {
			p := plan(st)
			p.CancelStarts = []collation.RowKey{{Job: row.Job, GUID: row.GUID}}
			require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, p)}))
			require.ErrorIs(t, devtest.Await(t, "the answer to the inception", spawned), store.ErrStale)
			require.ErrorIs(t, failed(s.Job(t.Context(), row.Job)), store.ErrNotFound)
			continue
		}
		require.NoError(t, c.Rollback(t.Context()))
		require.NoError(t, devtest.Await(t, "the answer to the inception", spawned))
		v := must(s.Job(t.Context(), row.Job))(t)
		require.Equal(t, id, v.Parent.Job)
		st = load(t, c, store.Want{Job: id})
		require.NoError(t, c.More(t.Context(), map[journal.JobID]*collation.Need{id: {AllRows: true}}))
		require.NotContains(t, st.Rows, row.GUID, "it is nobody's to take back any more")
		require.NoError(t, c.Rollback(t.Context()))
	}
}

// An inception that lost its key to another starter names the job that has it. The order stays,
// to be refused.
func TestSpawnLosesItsKey(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	row := orderChild(t, openCommitter(t, s), id)
	start := spawnOf(&row)
	start.Key = "mine"
	other := blocker(t, s, `INSERT INTO jobs (id, n, key, generation, flow_name, flow_version, flow_digest, trigger, state, semaphore,
		head_seq, head_hash, started, trace) SELECT gen_random_uuid(), -1, 'mine', 1, flow_name, flow_version, flow_digest, trigger,
		'open', 1, 0, head_hash, 0, '' FROM jobs`)
	spawned := make(chan error, 1)
	go func() { spawned <- s.driven().Spawn(t.Context(), &row, start, collation.Mode{}) }()
	waitFor(t, s, someoneWaits)
	must(other.Exec(t.Context(), "COMMIT"))(t)
	var taken *store.AlreadyStartedError
	require.ErrorAs(t, devtest.Await(t, "the answer to the inception", spawned), &taken)
	require.Equal(t, "mine", taken.Key)
	require.NotEqual(t, row.Job, taken.Job)
	l := must(openCommitter(t, s).Load(t.Context(), []store.Want{{Order: row.Job}}, true))(t)
	require.Equal(t, &row, l.Orders[row.Job])
}

// J6: one round trip loads whatever decisions ask for, and one commits waits, children's starts
// and their cancels. What the store decides itself takes two.
func TestJ6RoundTripsOfSignalsAndChildren(t *testing.T) {
	t.Parallel()
	var p *cut.Proxy
	s := unannounced(fresh(t, func(c *Config) {
		p, c.DSN = through(t, c.DSN)
		c.MaxConns = 1
	}))
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	prepared := false
	trips := func(what string, want int64, call func()) {
		t.Helper()
		before := p.Trips()
		call()
		if prepared {
			require.Equal(t, before+want, p.Trips(), what)
		}
	}
	for round := range 2 { // the first prepares
		prepared = round > 0
		row := orderChild(t, c, id)
		require.NoError(t, register(t, c, id, waitOf(id, 10*round, "old"), waitOf(id, 10*round+1, "other")))
		st := load(t, c, store.Want{Job: id})
		trips("More", 1, func() {
			require.NoError(t, c.More(t.Context(), map[journal.JobID]*collation.Need{id: {
				Instances: []collation.InstanceKey{work}, Results: []collation.InstanceKey{work},
				Effects: []journal.GUID{row.GUID},
				Rows:    []collation.RowKey{{Job: row.Job, GUID: row.GUID}},
				Waits:   []journal.GUID{waitOf(id, 10*round, "").GUID},
				Latest:  []string{"start", "work"}, Keys: []string{"k", "l"}, Close: true, AllRows: true,
			}}))
		})
		trips("Commit", 1, func() {
			p := plan(st)
			p.Waits = []collation.Wait{waitOf(id, 10*round+2, "new"), waitOf(id, 10*round+3, "newer")}
			p.CancelWaits = []collation.CancelledWait{{GUID: waitOf(id, 10*round, "").GUID}}
			p.CancelStarts = []collation.RowKey{{Job: row.Job, GUID: row.GUID}}
			p.Insert = []collation.Row{{
				GUID: journal.GUID{byte(round), 1}, Job: journal.JobID{7}, Kind: journal.MessageOutcome, DAD: ",0",
			}}
			require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, p)}))
		})
		caller := fmt.Sprint(round)
		key := putSignal(t, c, id, signalOf(s, "other", caller))
		if round == 0 {
			must(s.driven().Signal(t.Context(), signalOf(s, "new", caller), resend))(t)
			must(s.driven().Deliver(t.Context(), []collation.RowKey{key}, resend))(t)
			continue
		}
		trips("Signal", 3, func() { // the name of the space is read, too
			got := must(s.driven().Signal(t.Context(), signalOf(s, "new", caller), resend))(t)
			require.Equal(t, 1, got.Reached)
		})
		trips("Deliver", 2, func() {
			out := must(s.driven().Deliver(t.Context(), []collation.RowKey{key}, resend))(t)
			require.Len(t, out, 1)
		})
	}
}
