package flow

import "strings"

// graph links the activities of a definition. Faulty edges are reported and
// left out, so that what remains is a forest in which references can still be
// checked.
type graph struct {
	*collector
	def    *definition
	byName map[string]*vertex
	all    []*vertex
	roots  []*vertex
	single bool // exactly one trigger
}

type vertex struct {
	*Activity
	def     *activityDef
	out     []*edge
	in      []*edge
	state   uint8 // of the walk: 0 unseen, 1 on the way, 2 done
	reached bool
}

type edge struct {
	def      *transitionDef
	from, to *vertex
	dropped  bool
}

func newGraph(c *collector, def *definition) *graph {
	g := &graph{collector: c, def: def, byName: make(map[string]*vertex, len(def.activities))}
	for _, a := range def.activities {
		v := &vertex{def: a, Activity: &Activity{
			Name: a.name, Type: a.kind, Topic: a.topic, Retry: a.retry, Timeout: a.timeout, Within: a.within, Class: a.class,
		}}
		g.byName[a.name] = v
		g.all = append(g.all, v)
	}
	g.triggers()
	for _, t := range def.transitions {
		e := &edge{def: t, from: g.byName[t.from], to: g.byName[t.to]}
		if e.to.Type == TypeTrigger {
			g.at(t.at, t.path, "a trigger has no incoming transition")
			continue
		}
		if e.from.Type == TypeTrigger && t.onError {
			g.at(t.at, t.path, "a trigger has no error that a transition could take")
		}
		e.from.out = append(e.from.out, e)
		e.to.in = append(e.to.in, e)
	}
	g.cycles()
	g.joins()
	g.reach()
	return g
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
	g.single = len(g.roots) == 1
	if len(g.roots) == 0 && len(g.all) > 0 {
		g.add(g.all[0].def.at, "activities", "", "a flow has exactly one trigger, there is none")
	}
}

// cycles drops every edge that leads back.
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
				e.dropped = true
				g.at(e.def.at, e.def.path, "the transitions make a cycle, %s; only a cycle activity makes a loop", cycleText(way, e.to))
			}
		}
		way = way[:len(way)-1]
		v.state = 2
	}
	for _, v := range g.roots {
		walk(v)
	}
	for _, v := range g.all {
		if v.state == 0 {
			walk(v)
		}
	}
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

// joins keeps one incoming edge of each activity.
func (g *graph) joins() {
	for _, v := range g.all {
		var first *edge
		for _, e := range v.in {
			switch {
			case e.dropped:
			case first == nil:
				first = e
			default:
				e.dropped = true
				g.at(e.def.at, e.def.path, "this build does not support joins yet: %s already follows %s, and an activity has one incoming transition",
					v.Name, first.from.Name)
			}
		}
	}
}

// reach numbers the forest: parents, depths, intervals, and the order of
// Flow.Activities.
func (g *graph) reach() {
	clock := 0
	var walk func(v *vertex)
	walk = func(v *vertex) {
		v.reached = true
		clock++
		v.enter = clock
		for _, e := range v.out {
			if e.dropped {
				continue
			}
			e.to.Parent, e.to.Depth = v.Activity, v.Depth+1
			walk(e.to)
		}
		clock++
		v.leave = clock
	}
	for _, v := range g.roots {
		walk(v)
	}
	for _, v := range g.all {
		if g.single && !v.reached {
			g.add(v.def.at, join("activities", v.Name), v.Name, "no transition leads here from the trigger")
		}
	}
}

// ordered gives the vertices breadth first from the trigger.
func (g *graph) ordered() []*vertex {
	order := append(make([]*vertex, 0, len(g.all)), g.roots...)
	for i := 0; i < len(order); i++ {
		for _, e := range order[i].out {
			order = append(order, e.to)
		}
	}
	return order
}
