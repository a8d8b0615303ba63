package model

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/internal/testkit/soak"
)

// gen draws one flow. Draws are arranged so that smaller ones mean a simpler
// flow, which is what rapid shrinks to.
type gen struct {
	t    *rapid.T
	d    *def
	kids []*def // flows that it may await
	// calm flows have one end, so that a parent knows what it gets.
	calm bool
	// quiet flows have an output that does not depend on what was cut off.
	quiet bool
	// kinds are the weights of the kinds of activities, window is how many of the
	// last ones are preferred as parents: each flow has a character of its own.
	kinds  []any
	window int
	more   map[*act]*facts
}

// facts are what the generator knows of an activity besides its definition.
type facts struct {
	sure  set    // what is certainly decided when it runs
	shape string // of its output on success: object (with a number v), list, or none
	fails bool   // it may end with an error
	once  bool   // it must not run twice in a job
	max   *int   // the passes that its cycles allow
	any   bool   // what woke it is not to be known
	firm  bool   // its success must stand: somebody waits for what follows
}

// Shapes of outputs.
const (
	shapeObject = "object"
	shapeList   = "list"
	shapeNone   = "none"
)

// upTo draws 0 to n.
func (g *gen) upTo(label string, n int) int { return soak.Evenly(g.t, label, n) }

// chance is true in so many of a hundred draws; it shrinks to false.
func (g *gen) chance(label string, percent int) bool {
	return g.upTo(label, 99) >= 100-percent
}

func pick[T any](g *gen, label string, of ...T) T {
	return of[g.upTo(label, len(of)-1)]
}

// weighted draws a key by its weight; the first is the simplest.
func (g *gen) weighted(label string, table ...any) string {
	sum := 0
	for i := 1; i < len(table); i += 2 {
		sum += table[i].(int)
	}
	at := g.upTo(label, sum-1)
	for i := 0; ; i += 2 {
		if at -= table[i+1].(int); at < 0 {
			return table[i].(string)
		}
	}
}

// drawFlow draws a flow of up to most activities.
func drawFlow(t *rapid.T, name string, most int, calm bool, kids []*def) *def {
	g := &gen{t: t, d: &def{name: name, byName: map[string]*act{}}, kids: kids, calm: calm, more: map[*act]*facts{}}
	g.add("start", "trigger", map[string]any{}, shapeObject)
	g.quiet = !calm && g.chance("quiet", 10)
	g.window = pick(g, "window", 4, 1, 8, maxActs)
	for i := 0; i < len(kinds); i += 2 {
		g.kinds = append(g.kinds, kinds[i], kinds[i+1].(int)*pick(g, kinds[i].(string), 2, 1, 0, 6))
	}
	g.kinds[1] = g.kinds[1].(int) + 1
	for n := g.upTo("activities", most-1); len(g.d.acts) <= n; {
		g.grow()
	}
	g.mend()
	g.outputs()
	return g.d
}

// add makes an activity without transitions.
func (g *gen) add(name, typ string, props map[string]any, shape string) *act {
	props["type"] = typ
	a := &act{name: name, typ: typ, props: props, index: len(g.d.acts)}
	g.d.acts = append(g.d.acts, a)
	g.d.byName[name] = a
	g.more[a] = &facts{shape: shape}
	return a
}

// link adds a transition.
func (g *gen) link(from, to *act, onError bool, when string) *edge {
	e := &edge{from: from, to: to, onError: onError, when: when}
	from.out, to.in = append(from.out, e), append(to.in, e)
	return e
}

func (g *gen) unlink(e *edge) {
	gone := func(x *edge) bool { return x == e }
	e.from.out = slices.DeleteFunc(e.from.out, gone)
	e.to.in = slices.DeleteFunc(e.to.in, gone)
}

// refresh finds out again what follows from the shape.
func (g *gen) refresh() {
	g.d.analyse()
	for _, a := range g.d.acts {
		f := g.more[a]
		f.sure = 0
		for i, e := range a.in {
			decided := g.more[e.from].sure.with(e.from)
			switch {
			case i == 0:
				f.sure = decided
			case a.text("join") == "any":
				f.sure &= decided
			default:
				f.sure |= decided
			}
		}
	}
}

// parent draws an activity that may have successors, mostly a late one.
func (g *gen) parent() *act {
	var open []*act
	for _, a := range g.d.acts {
		if !a.ends() {
			open = append(open, a)
		}
	}
	if g.chance("recent", 70) {
		open = open[max(0, len(open)-g.window):]
	}
	return open[len(open)-1-g.upTo("parent", len(open)-1)]
}

// kinds are what grow adds, with their weights.
var kinds = []any{
	"worker", 38, "through", 14, "hook", 16, "await", 10, "cycle", 9, "signal", 4, "interrupt", 7, "meet", 4, "gate", 3, "kill", 3,
}

// grow adds an activity, with all that it needs.
func (g *gen) grow() {
	n := len(g.d.acts)
	switch g.weighted("type", g.kinds...) {
	case "worker":
		g.attach(g.add(fmt.Sprintf("w%d", n), "worker", map[string]any{"topic": topicWork}, shapeObject), g.worker)
	case "through":
		g.attach(g.add(fmt.Sprintf("t%d", n), "hook", map[string]any{}, shapeObject), g.through)
	case "hook":
		g.attach(g.add(fmt.Sprintf("h%d", n), "hook", map[string]any{"sleep": "1s"}, shapeNone), g.hook)
	case "await":
		g.attach(g.add(fmt.Sprintf("k%d", n), "await", map[string]any{}, shapeNone), g.await)
	case "cycle":
		g.cycle(n)
	case "signal":
		g.attach(g.add(fmt.Sprintf("g%d", n), "signal", map[string]any{}, shapeNone), g.signal)
	case "interrupt":
		a := g.add(fmt.Sprintf("i%d", n), "interrupt", map[string]any{}, shapeNone)
		g.attach(a, g.interrupt)
	case "meet":
		g.meet(n)
	case "gate":
		g.gate(n)
	case "kill":
		g.kill(n)
	}
}

// attach gives an activity its transitions, and then its clauses.
func (g *gen) attach(a *act, fill func(*act)) {
	parents := 1
	if k := g.upTo("parents", 99); k >= 65 {
		parents = 2 + (k-65)/25
	}
	for range parents {
		p := a
		for p == a {
			p = g.parent()
		}
		g.linkFrom(p, a)
	}
	if g.chance("any", 35) {
		a.props["join"] = "any"
	}
	g.trim(a)
	fill(a)
	g.refresh()
	if !g.d.legal() { // it makes passes where none may be
		panic("model: " + a.name + " is illegal")
	}
}

// trim takes transitions away until the joins are legal.
func (g *gen) trim(a *act) {
	g.refresh()
	for len(a.in) > 1 && !g.d.legal() {
		g.unlink(a.in[len(a.in)-1])
		g.refresh()
	}
	if len(a.in) < 2 {
		delete(a.props, "join")
		g.refresh()
	}
}

// linkFrom adds one transition, or one for each way in which the parent ends.
func (g *gen) linkFrom(p, a *act) {
	g.refresh()
	onError := p.typ != "trigger" && g.more[p].fails && g.chance("on error", 50)
	when := ""
	if g.chance("when", 35) {
		when = g.condition(p)
	}
	if !onError && !g.more[p].firm && !(g.calm && p.typ == "trigger") && g.chance("when fails", 2) {
		when, g.more[p].fails = p.name+".output.none == 1", true
	}
	g.link(p, a, onError, when)
	if p.typ != "trigger" && g.more[p].fails && g.chance("either way", 12) {
		g.link(p, a, !onError, "")
	}
}

// mend gives most activities that may fail somewhere to go.
func (g *gen) mend() {
	for _, a := range slices.Clone(g.d.acts) {
		caught := !g.more[a].fails || a.typ == "trigger" // nothing takes the error of a trigger
		for _, e := range a.out {
			caught = caught || e.onError && e.when == ""
		}
		if caught || !g.calm && g.chance("leave it", 12) {
			continue
		}
		g.link(a, g.add("x"+a.name, "hook", map[string]any{"input": map[string]any{"v": 1, "n": 0}}, shapeObject), true, "")
	}
	g.refresh()
	if g.quiet && g.chance("ends", 70) {
		i := g.add("ends", "interrupt", map[string]any{"throw": false}, shapeNone)
		g.link(g.parent(), i, false, "start.output.v % 2 == 0")
		g.refresh()
	}
	if g.calm && g.chance("fails", 25) {
		a := g.add("last", "worker", map[string]any{"topic": topicWork, "input": map[string]any{"code": 418}}, shapeNone)
		if g.chance("interrupts", 40) {
			a.typ, a.props = "interrupt", map[string]any{"type": "interrupt", "code": 418}
		}
		g.link(g.d.acts[0], a, false, "start.output.v % 2 == 0")
		g.refresh()
	}
}

// outputs draws what the flow gives.
func (g *gen) outputs() {
	out := map[string]any{"v": "${ start.output.v }"}
	for _, a := range g.d.acts[1:] {
		if a.ends() || g.quiet || !g.chance("give", 70) {
			continue
		}
		out[a.name+"_code"] = "${ " + a.name + ".code }"
		out[a.name+"_skipped"] = "${ " + a.name + ".skipped }"
		if a.typ == "hook" && !g.more[a].any {
			out[a.name+"_by"] = "${ " + a.name + ".by }"
		}
		if g.more[a].shape != shapeNone {
			out[a.name] = "${ " + a.name + ".output }"
		}
	}
	g.d.output = out
	if !g.calm && g.chance("output fails", 2) {
		out["broken"] = "${ start.output.none }"
	}
}
