package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

const forked = `
flow: forked
version: "1"
activities:
  start: {type: trigger}
  p: {type: hook, input: {n: 1}}
  a: {type: worker, topic: a, each: "${ [1, 2] }"}
  b: {type: await, flow: other, id: "x"}
  again: {type: cycle, to: p, input: {n: 2}}
  c: {type: worker, topic: c}
transitions: {start: [p, c], p: [a], a: [b], b: [{to: again, when: "p.output.n == 1"}]}
`

// What a resuming job does again: the instance that failed, and of a list the elements that
// have not succeeded; or all instances of a named activity and what follows, also round a loop.
// A child that has completed is never started again.
func TestWhatIsDoneAgain(t *testing.T) {
	t.Parallel()
	f, err := flow.Parse("flow.yaml", []byte(forked))
	require.NoError(t, err)
	act := func(name string) *flow.Activity { a, _ := f.Activity(name); return a }
	here, there := collation.DAD(",0,0,0"), collation.DAD(",0,1,0")
	for name, x := range map[string]struct {
		from    journal.From
		act     string
		dad     collation.DAD
		code    int
		element bool
		want    bool
	}{
		"nothing is named":                 {journal.From{}, "a", here, 200, false, false},
		"the one that failed":              {journal.From{Activity: "a", DAD: string(here)}, "a", here, 500, false, true},
		"another pass of it":               {journal.From{Activity: "a", DAD: string(here)}, "a", there, 200, false, false},
		"an element of it that failed":     {journal.From{Activity: "a", DAD: string(here)}, "a", here, 500, true, true},
		"an element of it that did not":    {journal.From{Activity: "a", DAD: string(here)}, "a", here, 200, true, false},
		"what follows the one that failed": {journal.From{Activity: "a", DAD: string(here)}, "b", here, 408, false, false},
		"a named one":                      {journal.From{Activity: "a"}, "a", there, 200, false, true},
		"an element of a named one":        {journal.From{Activity: "a"}, "a", there, 200, true, true},
		"what follows a named one":         {journal.From{Activity: "a"}, "b", here, 408, false, true},
		"its child that has completed":     {journal.From{Activity: "a"}, "b", here, 200, false, false},
		"round the loop":                   {journal.From{Activity: "a"}, "p", here, 200, false, true},
		"a branch beside it":               {journal.From{Activity: "a"}, "c", here, 200, false, false},
		"an activity that there is not":    {journal.From{Activity: "z"}, "c", here, 200, false, false},
	} {
		require.Equal(t, x.want, collation.Again(f, &x.from, act(x.act), x.dad, x.code, x.element), name)
	}
}

// A child that expired before its outcome was taken over is not started again: the await fails
// and says why.
func TestAGoneChildIsNotBegunAnew(t *testing.T) {
	t.Parallel()
	f, err := flow.Parse("flow.yaml", []byte("flow: f\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n  b: {type: await, flow: other, id: x}\ntransitions: {start: [b]}\n"))
	require.NoError(t, err)
	w := newWorld(f, "k", []byte(`{}`), collation.Mode{Resend: 1e6, Stepwise: true})
	w.state.Job.From = &journal.From{Children: []journal.FromChild{{Activity: "b", DAD: ",0,0", Job: journal.JobID{7}}}}
	w.settle()
	require.Equal(t, journal.JobFailed, w.state.Job.State)
	var said []string
	for _, e := range w.entries {
		if e.Close != nil && e.Close.Error != nil {
			said = append(said, e.Close.Error.Class, e.Close.Error.Message)
		}
	}
	require.Equal(t, []string{"expired", "job 07000000-0000-0000-0000-000000000000, whose outcome was to be taken over, has expired"}, said)
	require.Empty(t, w.sent, "no child is ordered")
}
