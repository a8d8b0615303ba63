package postgres

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// W6: what moves a job that was decided on a hot state compares its state and its head, and what
// it lost to is named. What no change by the protocol leaves alone (a head with the same seq) is
// compared, too.
func TestW6WhatMovesAJobComparesItsHotState(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, move := range map[string]func(*collation.Plan){
		"the head":      func(*collation.Plan) {},
		"the semaphore": func(p *collation.Plan) { p.Semaphore.After++ },
	} {
		id := startJobs(t, s, name)[0]
		c := must(s.Committer(t.Context(), false))(t)
		t.Cleanup(c.Close)
		st := load(t, c, store.Want{Job: id})
		require.NoError(t, c.Rollback(t.Context()))
		guess := func(change func(*store.Guard)) error {
			p := plan(st)
			move(p)
			job := st.Job
			x := store.Chain(&job, p)
			x.Guard = store.GuardOf(st, []*collation.Plan{p})
			change(x.Guard)
			return c.Commit(t.Context(), []store.Chained{x})
		}
		for what, change := range map[string]func(*store.Guard){
			"hash":  func(g *store.Guard) { g.Head.Hash[0]++ },
			"state": func(g *store.Guard) { g.State = journal.JobQuarantined },
		} {
			err := guess(change)
			lost, named := errors.AsType[*store.LostError](err)
			require.True(t, named, "%s, %s: %v", name, what, err)
			require.Equal(t, []journal.JobID{id}, lost.Hot, "%s, %s", name, what)
		}
		require.NoError(t, guess(func(*store.Guard) {}), name)
	}
}
