package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// J2: the first load is a hint, and a message can name a flow that is not its job's. An
// instance that was not asked for is loaded. Taking it for missing would quarantine the job.
func TestJ2WhatWasNotAskedForIsLoaded(t *testing.T) {
	t.Parallel()
	w, a := atLeg2(t, collation.Mode{Resend: 1e6, Fold: true})
	other, err := flow.New("other").Version("1").Trigger("start").Worker("z", "topic.z").Transition("start", "z").Build()
	require.NoError(t, err)
	m := respond(a, ok(`{"x":1}`))
	asked, _ := collation.Wants(other, &m, w.mode)
	require.Empty(t, asked)
	key := collation.InstanceKey{Activity: "a", DAD: a.DAD}
	stored := w.state.Instances[key]
	delete(w.state.Instances, key)
	p, need := collation.Step(w.state, &m, w.mode)
	require.Nil(t, p)
	require.Equal(t, []collation.InstanceKey{key}, need.Instances)
	w.state.Instances[key] = stored
	require.Equal(t, collation.Handled, w.handle(m)[0].Outcome)
	require.Equal(t, journal.JobOpen, w.state.Job.State)
}
