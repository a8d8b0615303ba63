package spans_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/inspect/spans"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

func built(entries []*journal.Entry) *view.Tree {
	b := spans.New()
	for _, e := range entries {
		b.Add(e)
	}
	return b.Tree(nil)
}

// Whatever happens to a job of any activities, in any order and mode: its spans are one tree whose
// ids are all different, what has ended is the same in every later tree, and nothing but a late
// effect is open when the job has ended (O1, O2).
func TestEveryJournalGivesOneTree(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]collation.Mode{"fold": {Fold: true}, "apart": {}, "stepwise": {Stepwise: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				o := replaytest.Drawn(t, mode)
				for _, j := range replaytest.Family(o) {
					entries := j.Entries()
					whole := built(entries)
					oneTree(t, whole)
					at := rapid.IntRange(0, len(entries)-1).Draw(t, "until")
					grows(t, built(entries[:at+1]), whole)
				}
			})
		})
	}
}

func oneTree(t require.TestingT, tree *view.Tree) {
	byID := map[view.SpanID]*view.Span{}
	for i := range tree.Spans {
		s := &tree.Spans[i]
		require.Nil(t, byID[s.ID], "two spans %s and %v have one id", s.Name(), byID[s.ID])
		require.True(t, s.End == 0 || s.End >= s.Start, s.Name())
		if i == 0 {
			require.Equal(t, spans.PartJob, s.Part)
		} else {
			require.NotNil(t, byID[s.Parent], "%s comes before its parent", s.Name())
			require.GreaterOrEqual(t, s.Start, byID[s.Parent].Start, "%s begins before its parent", s.Name())
		}
		byID[s.ID] = s
		closed := tree.State.Closed() && tree.Spans[0].End != 0
		if closed && s.End == 0 && s.Part != spans.PartEffect {
			require.Fail(t, s.Name()+" is open", text(tree))
		}
	}
	require.Len(t, tree.Depths(), len(byID))
}

// grows holds that what has ended in an earlier tree is the same in a later one.
func grows(t require.TestingT, early, late *view.Tree) {
	later := map[view.SpanID]view.Span{}
	for _, s := range late.Spans {
		later[s.ID] = s
	}
	for _, s := range early.Ended() {
		require.Equal(t, later[s.ID], s)
	}
}

// L4, O1: a run that began before its request was sent, by its clock or because its cause had not
// committed, begins with its attempt. If one transaction has both, it was early.
func TestEarlyRun(t *testing.T) {
	t.Parallel()
	const at = 1_700_000_000_000_000
	request, job := journal.GUID{2}, journal.DeriveJob("shop", "k", 1)
	for name, x := range map[string]struct {
		began, ran, answered int64
		early                bool
	}{
		"in the transaction of its cause":       {at - 3, 20, at, true},
		"there, and it began after the load":    {at + 90, 20, at, true},
		"after it":                              {at - 3, 20, at + 900, false},
		"in a world whose clock does not go on": {at, 0, at, false},
	} {
		tree := built([]*journal.Entry{{
			Kind: journal.KindCreated, Job: job, GUID: job.Start(), Activity: "start", DAD: ",0", Time: at,
			Dispatched: []journal.Dispatched{{
				Kind: journal.MessageRequest, GUID: request, Activity: "work", DAD: ",0,0", Topic: "t",
			}},
		}, {
			Kind: journal.KindLeg2, Job: job, GUID: journal.GUID{3}, Activity: "work", DAD: ",0,0", Time: x.answered,
			Response: &journal.Response{
				Kind: journal.ResponseTerminal, Request: request, Turn: 1, Began: x.began, Ran: x.ran,
			},
		}})
		oneTree(t, tree)
		for _, s := range tree.Spans {
			early := s.Part == spans.PartRun && x.early
			require.Equal(t, early, slices.Contains(s.Attributes, view.Attribute{Key: "quipu.early", Number: 1}), name)
			if s.Part == spans.PartRun {
				require.Equal(t, x.ran, s.End-s.Start, name)
			}
		}
	}
}

// O1: a clock that steps back, as a promoted server's may, lets an attempt work and answer before the
// time that it was to wait for. The tree stays one, and no attempt follows the answer.
func TestAttemptBeforeItsTime(t *testing.T) {
	t.Parallel()
	const at = 1_700_000_000_000_000
	request, job := journal.GUID{2}, journal.DeriveJob("shop", "k", 1)
	answer := func(turn int, time int64, kind journal.ResponseKind) *journal.Entry {
		return &journal.Entry{
			Kind: journal.KindLeg2, Job: job, GUID: journal.GUID{3, byte(turn)}, Activity: "work", DAD: ",0,0", Time: time,
			Response: &journal.Response{Kind: kind, Request: request, Turn: turn},
		}
	}
	failed, done := answer(1, at+1, journal.ResponseFailedAttempt), answer(2, at+3, journal.ResponseTerminal)
	failed.Updated = []journal.Updated{{
		Kind: journal.MessageRequest, GUID: request, Turn: 2, Attempt: 2, NextAt: at + 99,
	}}
	done.Close, done.Marks = &journal.Close{State: journal.JobCompleted}, []journal.Mark{journal.MarkTasks}
	effect := &journal.Entry{
		Kind: journal.KindEffectCompleted, Job: job, Chain: request, Seq: 1, Time: at + 2,
		Effect: &journal.Effect{Name: "charge", Class: "pure", Turn: 2},
	}
	first := &journal.Entry{
		Kind: journal.KindCreated, Job: job, GUID: job.Start(), Activity: "start", DAD: ",0", Time: at,
		Dispatched: []journal.Dispatched{{
			Kind: journal.MessageRequest, GUID: request, Activity: "work", DAD: ",0,0", Topic: "t",
		}},
	}
	for _, answered := range []int64{at + 3, at + 98, at + 99, at + 200} {
		done.Time = answered
		tree := built([]*journal.Entry{first, failed, done, effect})
		oneTree(t, tree)
		grows(t, built([]*journal.Entry{first, failed, done}), tree)
		attempts := 0
		for _, s := range tree.Spans {
			if s.Part == spans.PartAttempt {
				attempts++
				abandoned := func(a view.Attribute) bool { return a.Key == "quipu.abandoned" }
				require.False(t, slices.ContainsFunc(s.Attributes, abandoned))
			}
		}
		require.Equal(t, 2, attempts)
	}
}
