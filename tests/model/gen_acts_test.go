package model

import "fmt"

// worker draws what a worker gets and does.
func (g *gen) worker(a *act) {
	in := map[string]any{"act": a.name, "v": g.value(a, false)}
	a.props["input"] = in
	f := g.more[a]
	switch g.weighted("ends", "well", 60, "badly", 12, "either", 16, "input", 3, "nobody", 3, "effect", 6, "plain", 3) {
	case "badly":
		in["code"], f.fails = pick(g, "code", 422, 404, 500, 503), true
	case "either":
		in["code"] = fmt.Sprintf("${ %s %% 2 == 0 ? 200 : %d }", g.number(a, false), pick(g, "code", 422, 500))
		f.fails = true
	case "input":
		in["v"], f.fails = g.raw(a), true
	case "nobody":
		a.props["topic"], a.props["within"], f.fails = topicNobody, pick(g, "within", "1s", "3s"), true
		return
	case "effect":
		a.props["topic"] = topicEffect
	case "plain": // the elements themselves are the inputs
		delete(a.props, "input")
		a.props["each"], f.shape = "start.output.list", shapeList
		return
	}
	if a.text("topic") == topicWork && g.chance("tries", 25) {
		g.tries(a, in)
	}
	if g.chance("each", 15) {
		g.each(a, in)
	} else if g.chance("list", 15) {
		in["list"] = 1 + g.upTo("size", 3)
	}
	if g.chance("within", 5) {
		a.props["within"] = "10h"
	}
	g.mapping(a)
}

// tries draws failed attempts and a policy that is enough, or not.
func (g *gen) tries(a *act, in map[string]any) {
	attempts := 1 + g.upTo("attempts", 3)
	in["fail"] = 1 + g.upTo("fail", 2)
	in["how"] = g.weighted("how", howError, 50, howBusy, 30, howPanic, 10, howHang, 10)
	a.props["retry"] = map[string]any{"attempts": attempts, "backoff": pick(g, "backoff", "100ms", "1s", "3s")}
	if in["how"] == howHang {
		a.props["timeout"] = "500ms"
	}
	if in["fail"].(int) >= attempts {
		g.more[a].fails = true
	}
}

// each makes one request for each element of a list.
func (g *gen) each(a *act, in map[string]any) {
	list := pick(g, "of", "start.output.list", "[4, 5]", "[]", "[1, 2, 3, 4, 5, 6]")
	for _, x := range g.known(a, false) {
		if i, ok := x.props["input"].(map[string]any); ok && i["list"] != nil && x.typ == "worker" && x.props["output"] == nil {
			list = fmt.Sprintf("(%s.output == null ? [] : %s.output.list)", x.name, x.name)
		}
	}
	a.props["each"] = list
	in["v"], in["n"] = "${ (item + "+g.number(a, false)+") % 10 }", "${ index }"
	if g.chance("item", 5) {
		in["v"], g.more[a].fails = "${ item.none }", true
	}
	if g.chance("bad", 40) {
		in["bad"] = []any{g.upTo("first", 2), 3}
	}
	g.more[a].shape = shapeList
	if in["bad"] != nil || g.more[a].fails {
		if g.chance("collect", 50) {
			a.props["each_errors"] = "collect"
			g.more[a].shape = shapeNone // errors are not to be known in full
		} else {
			g.more[a].fails = true
		}
	}
	if g.chance("parallel", 60) {
		a.props["parallel"] = 1 + g.upTo("at once", 2)
	}
}

// mapping draws an output clause.
func (g *gen) mapping(a *act) {
	if !g.chance("output", 20) {
		return
	}
	out := map[string]any{"v": g.value(a, true)}
	if a.text("signal") != "" && a.typ == "hook" {
		out["s"] = "${ signal == null ? 0 : signal.payload.v }"
	}
	if a.through() {
		out["n"] = "${ " + a.name + ".output.n }"
	}
	if g.chance("output fails", 8) {
		out["v"], g.more[a].fails = "${ "+a.name+".output.none }", true
	}
	a.props["output"] = out
	g.more[a].shape = shapeObject
}

// through draws a hook that waits for nothing; any may become a pivot.
func (g *gen) through(a *act) {
	in := map[string]any{"n": g.upTo("n", 2), "v": g.value(a, false)}
	a.props["input"] = in
	if g.chance("fails", 3) {
		in["v"], g.more[a].fails = g.raw(a), true
	}
	if g.chance("mapped", 30) {
		g.mapping(a)
	}
}

// hook draws one that waits.
func (g *gen) hook(a *act) {
	delete(a.props, "sleep")
	f := g.more[a]
	wait := func(rule string) {
		a.props["signal"], a.props["key"] = "topic."+rule, "${ job.id }/"+rule+"/"+a.name
	}
	switch g.weighted("waits for", "timer", 25, "signal", 25, "timer wins", 12, "signal wins", 12, "bad", 8, "late", 6, "repeat", 12, "race", 8) {
	case "timer":
		a.props["sleep"] = pick(g, "sleep", "100ms", "0s", "2s", "${ "+g.number(a, false)+" }s")
	case "race":
		wait("race")
		a.props["sleep"], a.props["output"] = "1s", map[string]any{"v": 5}
		f.shape, f.any = shapeObject, true
		return
	case "signal":
		wait("ok")
		f.shape = shapeObject
		if g.chance("expires", 20) {
			a.props["expires"] = "10h"
		}
	case "timer wins":
		wait("never")
		a.props["sleep"] = pick(g, "sleep", "100ms", "3s")
	case "signal wins":
		wait(pick(g, "rule", "ok", "ok", "bad"))
		a.props["sleep"] = "10h"
		f.shape, f.fails = shapeObject, a.text("signal") == "topic.bad"
	case "bad":
		wait("bad")
		f.fails = true
	case "late":
		wait("never")
		a.props["within"], f.fails = pick(g, "within", "500ms", "2s"), true
	case "repeat":
		g.repeat(a, wait)
	}
	if a.text("signal") != "" && a.text("within") == "" && g.chance("within", 15) {
		a.props["within"] = "10h"
	}
	g.mapping(a)
}

// repeat makes every signal a pass, where that is allowed.
func (g *gen) repeat(a *act, wait func(string)) {
	a.props["repeat"] = true
	g.refresh()
	if !g.d.legal() {
		delete(a.props, "repeat")
		wait("ok")
	} else {
		wait(pick(g, "rule", "ok", "two", "three", "onebad"))
	}
	g.more[a].shape, g.more[a].fails = shapeObject, a.text("signal") == "topic.onebad"
	g.refresh()
}

// cycle adds one that goes back to a pass-through hook above it, which it adds
// where there is none.
func (g *gen) cycle(n int) {
	name := fmt.Sprintf("c%d", n)
	p := g.parent()
	g.refresh()
	var pivots []*act
	for _, x := range g.d.acts {
		if x.through() && p.doms.has(x) && !g.aboveOnce(x) {
			x.passes, pivots = true, append(pivots, x)
			if !g.d.legal() {
				pivots = pivots[:len(pivots)-1]
			}
			g.refresh()
		}
	}
	if len(pivots) == 0 {
		t := g.add(fmt.Sprintf("t%d", n), "hook", map[string]any{}, shapeObject)
		g.link(p, t, false, "")
		g.refresh()
		t.props["input"] = map[string]any{"n": 1 + g.upTo("n", 1), "v": g.value(t, false)}
		p = g.add("w"+name, "worker", map[string]any{"topic": topicWork}, shapeObject)
		g.link(t, p, false, "")
		g.refresh()
		g.worker(p)
		pivots = append(pivots, t)
	}
	to := pivots[len(pivots)-1-g.upTo("pivot", len(pivots)-1)]
	c := g.add(name, "cycle", map[string]any{"to": to.name}, shapeNone)
	guard := fmt.Sprintf("(%s.output == null ? 0 : %s.output.n) > 0", to.name, to.name)
	when := guard
	if g.chance("more", 30) {
		when += " && " + g.condition(p)
	}
	if max := g.passes(to); max > 0 {
		c.props["max"] = max
	}
	g.link(p, c, g.more[p].fails && g.chance("on error", 60), when)
	if g.more[p].fails && g.chance("either way", 30) {
		g.link(p, c, true, when)
	}
	if others := g.below(to, c); len(others) > 0 && g.chance("join", 20) {
		q := others[g.upTo("other", len(others)-1)]
		g.link(q, c, false, guard)
		if g.chance("any", 50) {
			c.props["join"] = "any"
		}
	}
	g.trim(c)
	c.props["input"] = map[string]any{"n": "${ " + to.name + ".output.n - 1 }", "v": g.value(c, false)}
}

// below are the activities that a pivot dominates and that something may follow.
func (g *gen) below(pivot, but *act) []*act {
	var out []*act
	for _, a := range g.d.acts {
		if a != but && a.doms.has(pivot) && !a.ends() {
			out = append(out, a)
		}
	}
	return out
}

// passes bounds the passes of a pivot: equally for all its cycles, since which of
// them comes first is nobody's decision. 0 is the default.
func (g *gen) passes(pivot *act) int {
	f := g.more[pivot]
	if f.max == nil {
		f.max = new(int)
		switch kind := g.weighted("max", "default", 70, "ample", 20, "tight", 10); {
		case kind == "ample":
			*f.max = 50
		case kind == "tight" && !g.calm:
			*f.max = 1 + g.upTo("max", 1)
		}
	}
	return *f.max
}

// aboveOnce says that something below x must not run twice.
func (g *gen) aboveOnce(x *act) bool {
	for a, f := range g.more {
		if f.once && a.doms.has(x) {
			return true
		}
	}
	return false
}

// signal draws one to a hook of the flow, or to nobody.
func (g *gen) signal(a *act) {
	a.props["mode"] = pick(g, "mode", "one", "all")
	a.props["topic"], a.props["key"], a.props["payload"] = "topic.only", "${ job.id }/only/nobody", map[string]any{"v": 1}
	for _, h := range g.d.acts {
		if rule := h.text("signal"); rule == "topic.ok" && !h.flag("repeat", false) && g.chance("to "+h.name, 50) {
			g.sends(a, h)
		}
	}
	if g.chance("fails", 5) {
		a.props["payload"], g.more[a].fails = "${ start.output.none }", true
	}
	if g.chance("output", 20) {
		a.props["output"], g.more[a].shape = map[string]any{"v": g.value(a, false)}, shapeObject
	}
}

// sends makes the signal one that the hook waits for.
func (g *gen) sends(a, h *act) {
	r, _ := ruleOf(h.text("key"))
	a.props["topic"], a.props["key"], a.props["mode"] = h.text("signal"), h.text("key"), "one"
	a.props["payload"] = payloadOf(h.text("key"), 0)
	if r.code != 200 {
		a.props["code"] = r.code
	}
}

// interrupt draws one of the own job, or of one that is not there.
func (g *gen) interrupt(a *act) {
	kind := "nobody"
	if !g.calm {
		kind = g.weighted("target", "nobody", 40, "own", 40, "named", 20)
	}
	if kind != "nobody" {
		for _, e := range a.in { // seldom: it cuts off everything else
			e.when = fmt.Sprintf("%s == %d", g.number(e.from, true), g.upTo("only at", 9))
		}
	}
	a.props["code"] = pick[any](g, "code", 410, 499, 500, "${ 410 + "+g.number(a, false)+" }")
	switch kind {
	case "nobody":
		a.props["target"], g.more[a].fails = "nobody-${ job.id }", true
		if g.chance("output", 20) {
			a.props["output"] = map[string]any{"v": 1}
		}
	case "named":
		a.props["target"] = "${ job.id }"
	case "own":
		a.props["reason"] = "refused ${ start.output.v }"
		if g.chance("descend", 30) {
			a.props["descend"] = true
		}
		if g.quiet && g.chance("no throw", 50) {
			a.props["throw"] = false
		}
	}
}
