package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// C11: two passes of one loop are open, and the message accepted first closes the job. With
// Stepwise, its step 2 must decide by the same output of the flow that step 3 records: that of
// the later pass.
func TestC11StepsSeeOneLatestResult(t *testing.T) {
	t.Parallel()
	f, err := flow.Parse("flow.yaml", []byte(`
flow: loop
version: "1"
output: {x: "${ w.output.x }"}
activities:
  start: {type: trigger}
  p: {type: hook, input: {n: 1}}
  w: {type: worker, topic: w}
  again: {type: cycle, to: p, input: {n: 2}}
transitions:
  start: [p]
  p: [w, {to: again, when: "p.output.n == 1"}]
`))
	require.NoError(t, err)
	w := newWorld(f, "k", []byte(`{}`), stepwise)
	for len(w.queue) > 0 {
		w.next()
	}
	require.Len(t, w.asked, 2)
	first := respond(&w.asked[0], ok(`{"x":1}`))
	w.commitOnce(first) // accepted only
	w.handle(respond(&w.asked[1], ok(`{}`)))
	w.handle(first)
	require.Equal(t, journal.JobFailed, w.state.Job.State, "the later pass has no x")
}
