package console

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

func surveyed(t *testing.T, f *flow.Flow) []view.Standing {
	t.Helper()
	return explain.Survey(&explain.Job{View: new(store.JobView), Flow: f})
}

// O8: a graph shows every activity once, none over another, each below those that lead to it.
func TestO8GraphLayout(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("testdata/order.yaml")
	require.NoError(t, err)
	f, err := flow.Parse("order", source)
	require.NoError(t, err)
	g := graphOf(f, surveyed(t, f))
	require.Len(t, g.Nodes, len(f.Activities()))
	at := map[string]*node{}
	for i, a := range g.Nodes {
		at[a.Name] = a
		require.GreaterOrEqual(t, a.X, g.Left)
		require.LessOrEqual(t, a.X+a.Width, g.Left+g.Width)
		require.LessOrEqual(t, a.Y+nodeHeight, g.Height)
		for _, b := range g.Nodes[:i] {
			require.False(t, a.Y == b.Y && a.X < b.X+b.Width && b.X < a.X+a.Width, "%s over %s", a.Name, b.Name)
		}
	}
	edges := 0
	for _, a := range f.Activities() {
		for _, x := range a.Out {
			edges++
			require.Greater(t, at[x.To.Name].Y, at[a.Name].Y)
		}
	}
	require.Len(t, g.Edges, edges+1, "and the way back of the cycle")
}

// A flow of many activities is a list.
func TestO8LargeGraphIsAList(t *testing.T) {
	t.Parallel()
	b := flow.New("long").Version("1").Trigger("start")
	last := "start"
	for n := range maxNodes {
		name := fmt.Sprint("a", n)
		b.Worker(name, "echo").Transition(last, name)
		last = name
	}
	f, err := b.Build()
	require.NoError(t, err)
	g := graphOf(f, surveyed(t, f))
	require.Empty(t, g.Nodes)
	require.Len(t, g.List, maxNodes+1)
}

// O8: ten thousand bars are folded, with their counts.
func TestO8TimelineFolds(t *testing.T) {
	t.Parallel()
	const attempts = 10_000
	began := time.UnixMicro(1_700_000_000_000_000)
	j := &view.Job{Summary: view.Summary{State: journal.JobCompleted}}
	for n := range attempts {
		j.Events = append(j.Events, view.Event{
			Time: began.Add(time.Duration(n) * time.Second), Kind: view.KindDone, Activity: fmt.Sprint("a", n%3),
			Address: ",0", Element: &n, Waited: view.Duration(time.Second), Ran: view.Duration(500 * time.Millisecond),
			Attempt: 1,
		})
	}
	now := began.Add(attempts * time.Second)
	few := *j
	few.Events = j.Events[:100]
	line := timelineOf(&few, now)
	require.False(t, line.Folded)
	require.Equal(t, 200, line.Bars, "of each attempt its wait and its run")
	folded := timelineOf(j, now)
	require.True(t, folded.Folded)
	require.Equal(t, 2*attempts, folded.Bars)
	require.Len(t, folded.Lanes, 3)
	sum := 0
	for _, l := range folded.Lanes {
		require.LessOrEqual(t, len(l.Bars), buckets)
		for _, b := range l.Bars {
			sum += b.N
			require.GreaterOrEqual(t, b.X, float64(laneName))
			require.LessOrEqual(t, b.X+b.W, float64(laneName+laneWidth)+0.01)
		}
	}
	require.Equal(t, attempts, sum)

	j.Events[7000].Kind = view.KindFailed
	folded = timelineOf(j, now)
	require.Equal(t, "a1[7000]", folded.Lanes[0].Name, "a lane of its own, the first")
	require.Len(t, folded.Lanes, 4)
}

// O8: of a thousand elements the one that failed comes first, wherever elements are listed.
func TestO8FailedFirst(t *testing.T) {
	t.Parallel()
	p := &jobPage{Job: &view.Job{}}
	for n := range 1000 {
		a := view.Activity{Activity: "pack", Element: &n, State: view.Done, Last: view.KindDone}
		switch n {
		case 400:
			a.State, a.Last = view.Stuck, view.KindAttempt
		case 700:
			a.State, a.Last = view.Failed, view.KindFailed
		}
		p.Job.Activities = append(p.Job.Activities, a)
	}
	p.parts()
	for at, want := range []int{700, 400, 0, 1} {
		require.Equal(t, want, *p.Activities.Shown[at].Element)
	}
	require.Equal(t, 900, p.Activities.More)
}
