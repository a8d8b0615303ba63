package memstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

const twoTopics = `
flow: flow
version: "1"
activities:
  start: {type: trigger}
  left: {type: worker, topic: t.left}
  right: {type: worker, topic: t.right}
transitions:
  start: [left, right]
`

// requested handles the rows of a job until only its requests are left, and returns them by activity.
func requested(t *testing.T, s *memstore.Store, f *flow.Flow, id journal.JobID) map[string]collation.Row {
	t.Helper()
	for {
		v, err := s.Job(t.Context(), id)
		require.NoError(t, err)
		requests := map[string]collation.Row{}
		for _, r := range v.Rows {
			if r.Kind != journal.MessageRequest {
				handle(t, s, f, journaltest.Message(&r))
				continue
			}
			requests[r.Activity] = r
		}
		if len(requests) == len(v.Rows) {
			return requests
		}
	}
}

func handle(t *testing.T, s *memstore.Store, f *flow.Flow, m *collation.Message) {
	t.Helper()
	step := func(st *collation.State, m *collation.Message) (*collation.Plan, *collation.Need) {
		st.Flow = f
		return collation.Step(st, m, collation.Mode{})
	}
	_, err := driven(s).Handle(t.Context(), step, m)
	require.NoError(t, err)
}

// E1, S8: an effect of an earlier generation is that of a request of the same topic; a request that has gone has none.
func TestPastEffectsAreOfTheTopic(t *testing.T) {
	t.Parallel()
	s := memstore.New(memstore.Config{})
	f, err := flow.Parse("flow.yaml", []byte(twoTopics))
	require.NoError(t, err)
	first := start(t, s, "k")
	requests := requested(t, s, f, first)
	left, right := requests["left"], requests["right"]
	session, err := s.OpenSession(t.Context(), store.Process{Name: "p", Lease: 1e9})
	require.NoError(t, err)
	l, err := driven(s).Lease(t.Context(), first, left.GUID, left.Turn, "w1", session.ID())
	require.NoError(t, err)
	e := journal.Effect{Key: journal.Digest{7}, Name: "pay", Class: store.ClassIdempotent}
	_, _, err = driven(s).StartEffect(t.Context(), l, e)
	require.NoError(t, err)
	handle(t, s, f, journaltest.Response(&right, &journal.Response{
		Kind: journal.ResponseTerminal, Code: collation.CodeInternal, Error: &journal.Failure{Class: "error", Message: "no"},
	}))

	c := open(t, s)
	st := load(t, c, first).States[first]
	require.Equal(t, journal.JobFailed, st.Job.State)
	from := &journal.From{Job: first, Generation: 1, Root: first, RootGeneration: 1, Activity: "right", DAD: ",0,0"}
	in := collation.Inception{
		Space: "memory", Flow: flowRef, Trigger: "start", Key: "k", Input: []byte(`{}`), Generation: 2, From: from, Now: st.Now,
	}
	second := collation.NewJobID("memory", "k", 2)
	last := store.Chain(&st.Job, collation.Resumed(st, second, "ann", "again", collation.Mode{}))
	in.GoOn(st)
	p := collation.Incept(in, collation.Mode{})
	born := store.Chain(&collation.Job{ID: p.Job, Space: in.Space, Generation: 2}, p)
	require.NoError(t, c.Commit(t.Context(), []store.Chained{last, born}))

	past := func(request journal.GUID) *collation.PastEffect {
		want := store.Want{
			Chain: collation.RowKey{Job: second, GUID: request}, Effects: []journal.Digest{e.Key}, Past: true,
		}
		loaded, err := c.Load(t.Context(), []store.Want{want}, true)
		require.NoError(t, err)
		require.NoError(t, c.Rollback(t.Context()))
		return loaded.Chains[want.Chain].Past[e.Key]
	}
	requests = requested(t, s, f, second)
	require.Nil(t, past(requests["right"].GUID), "of another topic")
	was := past(requests["left"].GUID)
	require.Equal(t, []any{int64(1), false}, []any{was.Generation, was.Live}, "its run has lost the request")
	require.Nil(t, past(left.GUID), "of a request that is not there")
}
