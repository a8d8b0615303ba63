package flow

import (
	"slices"
	"strings"
)

// graph links the activities of a definition. Edges that close a cycle are reported and
// dropped, so that the rest has an order in which references can still be checked.
type graph struct {
	*collector
	def    *definition
	byName map[string]*vertex
	all    []*vertex
	roots  []*vertex
	sorted []*vertex        // reached from the only trigger, in topological order
	blocks map[int][]uint64 // of leads
}

type vertex struct {
	*Activity
	def     *activityDef
	out     []*edge
	in      []*edge
	state   uint8 // of the walk in cycles: 0 unseen, 1 on the path, 2 done
	fails   bool  // a transition takes its errors
	reached bool  // from the only trigger; the fields below need it

	order     int     // index in topological order
	dominator *vertex // the immediate one
	jump      *vertex // a dominator further up, see nearest
}

type edge struct {
	def      *transitionDef
	from, to *vertex
	dropped  bool
}

// newGraph links the activities of the definition and reports faults of the graph.
func newGraph(c *collector, def *definition) *graph {
	g := &graph{
		collector: c, def: def, byName: make(map[string]*vertex, len(def.activities)), blocks: map[int][]uint64{},
	}
	for _, a := range def.activities {
		v := &vertex{def: a, Activity: newActivity(a)}
		g.byName[a.name] = v
		g.all = append(g.all, v)
	}
	g.triggers()
	for _, t := range def.transitions {
		g.link(&edge{def: t, from: g.byName[t.from], to: g.byName[t.to]})
	}
	g.cycles()
	g.reach()
	g.dominators()
	g.joins()
	g.pivots()
	g.meetings()
	return g
}

func newActivity(a *activityDef) *Activity {
	return &Activity{
		Name: a.name, Type: a.kind, Topic: a.topic, Retry: a.retry, Timeout: a.timeout, Within: a.within,
		Class:   a.class,
		HasEach: a.each != nil, Parallel: a.parallel, Collect: a.collect, Awaited: a.awaited,
		HasSleep: a.kind == TypeHook && a.has("sleep"), Repeat: a.repeat, MaxAge: a.maxAge, Max: a.max, All: a.all,
		HasTarget: a.kind == TypeInterrupt && !a.closer(), Throw: a.throw, Descend: a.descend,
	}
}

// link adds a transition. A misplaced transition is reported but stays, so that its
// target does not count as unreachable too.
func (g *graph) link(e *edge) {
	t := e.def
	switch {
	case e.to.Type == TypeTrigger:
		g.at(t.at, t.path, "a trigger has no incoming transition")
		return
	case e.from.Type == TypeTrigger && t.onError:
		g.at(t.at, t.path, "a trigger has no error that a transition could take")
	case e.from.Type == TypeCycle:
		g.at(t.at, t.path, "nothing follows a cycle: it goes back to its pivot")
	case e.from.def.closer():
		g.at(t.at, t.path, "nothing follows an interrupt of the own job; with target it is another one")
	}
	e.from.fails = e.from.fails || t.onError
	e.from.out = append(e.from.out, e)
	e.to.in = append(e.to.in, e)
}

// triggers finds the roots and reports when there is not exactly one trigger.
func (g *graph) triggers() {
	for _, v := range g.all {
		if v.Type != TypeTrigger {
			continue
		}
		if len(g.roots) > 0 {
			g.add(v.def.at, join("activities", v.Name), v.Name, "a flow has exactly one trigger, the first is %s", g.roots[0].Name)
		}
		g.roots = append(g.roots, v)
	}
	if len(g.roots) == 0 && len(g.all) > 0 {
		g.add(g.all[0].def.at, "activities", "", "a flow has exactly one trigger, there is none")
	}
}

// cycles drops every edge that closes a cycle.
func (g *graph) cycles() {
	var way []*vertex
	var walk func(v *vertex)
	walk = func(v *vertex) {
		v.state = 1
		way = append(way, v)
		for _, e := range v.out {
			switch e.to.state {
			case 0:
				walk(e.to)
			case 1:
				if e.dropped = true; g.full() {
					continue
				}
				g.at(e.def.at, e.def.path, "the transitions make a cycle, %s; only a cycle activity makes a loop", cycleText(way, e.to))
			}
		}
		way = way[:len(way)-1]
		v.state = 2
		g.sorted = append(g.sorted, v)
	}
	for _, v := range g.roots {
		walk(v)
	}
	reached := len(g.sorted)
	for _, v := range g.all {
		if v.state == 0 {
			walk(v)
		}
	}
	g.sorted = g.sorted[:reached]
	slices.Reverse(g.sorted)
}

func cycleText(way []*vertex, back *vertex) string {
	i := len(way) - 1
	for way[i] != back {
		i--
	}
	names := make([]string, 0, 8)
	for _, v := range way[i:] {
		if len(names) == 6 {
			names = append(names, "…")
			break
		}
		names = append(names, v.Name)
	}
	return strings.Join(append(names, back.Name), " → ")
}

// reach marks what the trigger reaches. Without exactly one trigger, or all transitions, nothing
// is reached; that is reported already, and its consequences are not.
func (g *graph) reach() {
	if len(g.roots) != 1 || g.def.partial {
		g.sorted = nil
		return
	}
	for i, v := range g.sorted {
		v.reached, v.order = true, i
	}
	for _, v := range g.all {
		if !v.reached {
			g.add(v.def.at, join("activities", v.Name), v.Name, "no transition leads here from the trigger")
		}
	}
}

// ordered returns the vertices breadth first from the trigger.
func (g *graph) ordered() []*vertex {
	seen := make([]bool, len(g.sorted))
	order := append(make([]*vertex, 0, len(g.sorted)), g.roots...)
	for i := 0; i < len(order); i++ {
		for _, e := range order[i].out {
			if !seen[e.to.order] {
				seen[e.to.order] = true
				order = append(order, e.to)
			}
		}
	}
	return order
}
