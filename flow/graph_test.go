package flow

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawn is a random graph of n activities, whose transitions lead from lower to higher
// numbers.
type drawn struct {
	n     int
	edges [][2]int
}

func drawGraph(t *rapid.T, most int) drawn {
	g := drawn{n: rapid.IntRange(1, most).Draw(t, "activities")}
	for to := 1; to < g.n; to++ {
		near := rapid.Bool().Draw(t, "near")
		for range rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3}).Draw(t, "transitions") {
			first := 0
			if near {
				first = max(0, to-5)
			}
			g.edges = append(g.edges, [2]int{rapid.IntRange(first, to-1).Draw(t, "from"), to})
		}
	}
	return g
}

// build makes a graph of workers, except where kinds says otherwise.
func (d drawn) build(t require.TestingT, kinds map[int]func(*activityDef)) (*graph, []*vertex) {
	def := &definition{}
	for i := range d.n {
		a := &activityDef{name: fmt.Sprint("a", i), kind: TypeWorker}
		if i == 0 {
			a.kind = TypeTrigger
		}
		if kind := kinds[i]; kind != nil {
			kind(a)
		}
		def.activities = append(def.activities, a)
	}
	for _, e := range d.edges {
		def.transitions = append(def.transitions,
			&transitionDef{from: fmt.Sprint("a", e[0]), to: fmt.Sprint("a", e[1]), at: &node{}})
	}
	g := newGraph(&collector{}, def)
	require.Len(t, g.sorted, d.n)
	return g, g.all
}

// reachable says which activities can be reached from one, itself included, without
// passing through another.
func (d drawn) reachable(from, without int) []bool {
	seen := make([]bool, d.n)
	if from == without {
		return seen
	}
	seen[from] = true
	for _, e := range d.edges { // sorted by target, so one pass is enough
		if seen[e[0]] && e[1] != without {
			seen[e[1]] = true
		}
	}
	return seen
}

// An activity dominates another if no path avoids it.
func TestDominators(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawGraph(t, 60)
		_, all := d.build(t, nil)
		for i, a := range all {
			around := d.reachable(0, i)
			for j, b := range all {
				if a.Dominates(b.Activity) == around[j] {
					t.Fatalf("%s over %s: %t", a.Name, b.Name, !around[j])
				}
				above := i != j && !around[j]
				if parent := above && b.Depth == a.Depth+1; parent != (b.Parent == a.Activity) {
					t.Fatalf("%s is the parent of %s: %t", a.Name, b.Name, parent)
				}
			}
		}
		depth := 0
		for a := all[d.n-1].Activity; a.Parent != nil; a = a.Parent {
			depth++
		}
		require.Equal(t, depth, all[d.n-1].Depth)
	})
}

// Ancestors are the activities that lead here; the graph is larger than a block.
func TestAncestors(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawGraph(t, 3*blockSize)
		g, all := d.build(t, nil)
		for i, a := range all {
			want := d.reachable(i, -1)
			for j, b := range all {
				if g.leads(a, b) != want[j] {
					t.Fatalf("from %s to %s: %t", a.Name, b.Name, want[j])
				}
			}
		}
	})
}

// 1.10: joins, their ancestors, and joins without an address.
func TestJoins(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawGraph(t, 25)
		loop := rapid.IntRange(0, d.n-1).Draw(t, "loop")
		kinds := map[int]func(*activityDef){loop: func(a *activityDef) {
			if a.kind != TypeTrigger {
				a.kind, a.topic, a.repeat = TypeHook, "s", true
			}
		}}
		g, all := d.build(t, kinds)
		behind := d.reachable(loop, -1)
		var apart []string
		for i, a := range all {
			incoming := 0
			for _, e := range d.edges {
				if e[1] == i {
					incoming++
				}
			}
			require.Equal(t, incoming > 1, a.Join != "")
			leads := false
			for j, reached := range d.reachable(i, -1) {
				leads = leads || reached && all[j].Join != ""
			}
			require.Equal(t, leads, a.LeadsToJoin)
			if a.Join == "" || i == loop || !behind[i] || loop == 0 {
				continue
			}
			dominator := slices.IndexFunc(all, func(v *vertex) bool { return v.Activity == a.Parent })
			if dominator != loop && d.reachable(dominator, -1)[loop] {
				apart = append(apart, "activities."+a.Name)
			}
		}
		var refused []string
		for _, f := range g.faults {
			require.Contains(t, f.Message, "move the join into the loop")
			refused = append(refused, f.Path)
		}
		require.ElementsMatch(t, apart, refused)
	})
}
