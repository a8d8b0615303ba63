package model

import (
	_ "embed"
	"fmt"
	"strings"
)

// Flows that are always there to be awaited. A napper tells that it is there and
// sleeps until somebody interrupts it; a boss awaits a napper; a watcher one that
// ends by itself.
var standing = strings.Split(standingText, "---\n")

//go:embed testdata/standing.yaml
var standingText string

// await draws which child is started, and how.
func (g *gen) await(a *act) {
	f := g.more[a]
	f.shape = shapeObject
	in := map[string]any{"v": g.value(a, false), "list": []any{g.upTo("item", 9), 1}}
	a.props["flow"], a.props["input"] = "napping", in
	looped := a.home != nil
	switch g.weighted("child", "kid", 50, "flaky", 12, "unawaited", 12, "unknown", 5, "refused", 5, "taken", 4, "late", 6, "either", 6) {
	case "kid":
		if len(g.kids) > 0 {
			k := pick(g, "flow", g.kids...)
			a.props["flow"], f.fails = k.name, k.byName["last"] != nil
		}
		if !looped && g.chance("id", 30) {
			a.props["id"], f.once = "${ job.id }/"+a.name, true
		} else if g.chance("again", 25) {
			a.props["retry"] = map[string]any{"attempts": 2, "backoff": pick(g, "backoff", "100ms", "2s")}
		}
	case "flaky":
		if !looped {
			g.flaky(a, in)
		}
	case "unawaited":
		a.props["await"], f.shape = false, shapeNone
	case "unknown":
		a.props["flow"], f.fails = "none", true
	case "refused":
		a.props["flow"], f.fails = "picky", true
		if g.chance("wanted", 30) {
			in["wanted"] = 1
		}
	case "taken":
		a.props["id"], f.fails = "${ job.id }", true
	case "late":
		a.props["flow"], a.props["within"], f.fails = "napper", "3s", true
		in["up"] = "${ job.id }/only/nobody"
	case "either":
		a.props["flow"] = fmt.Sprintf("${ %s %% 2 == 0 ? 'napping' : 'picky' }", g.number(a, false))
		in["wanted"] = 1
	}
	if a.text("within") == "" && g.chance("within", 10) {
		a.props["within"] = "10h"
	}
	if g.chance("version", 10) && f.shape != shapeNone {
		a.props["version"] = "1"
	}
	g.mapping(a)
}

// flaky awaits a child that fails at first.
func (g *gen) flaky(a *act, in map[string]any) {
	attempts := 1 + g.upTo("attempts", 2)
	in["fails"] = g.upTo("fails", 2)
	in["who"] = "${ job.id }/" + a.name
	a.props["flow"] = "flaky"
	a.props["retry"] = map[string]any{"attempts": attempts, "backoff": pick(g, "backoff", "100ms", "2s")}
	g.more[a].fails, g.more[a].once = in["fails"].(int) >= attempts, true
}

// meet adds two branches of which one waits for the signal that the other sends.
func (g *gen) meet(n int) {
	p := g.parent()
	key := fmt.Sprintf("${ job.id }/only/m%d", n)
	h := g.add(fmt.Sprintf("m%d", n), "hook", map[string]any{"signal": "topic.only", "key": key}, shapeObject)
	s := g.add(fmt.Sprintf("s%d", n), "signal", map[string]any{}, shapeNone)
	g.sends(s, h)
	g.link(p, h, false, "")
	from := p
	if g.chance("later", 50) {
		from = g.add(fmt.Sprintf("d%d", n), "hook", map[string]any{"sleep": "1s"}, shapeNone)
		g.more[from].firm = true
		g.link(p, from, false, "")
	}
	g.link(from, s, false, "")
	g.refresh()
}

// gate adds a join of which one branch waits for what follows the join: it must
// go through with the other one.
func (g *gen) gate(n int) {
	p := g.parent()
	key := fmt.Sprintf("${ job.id }/only/m%d", n)
	h := g.add(fmt.Sprintf("m%d", n), "hook", map[string]any{"signal": "topic.only", "key": key}, shapeObject)
	j := g.add(fmt.Sprintf("t%d", n), "hook", map[string]any{"join": "any", "input": map[string]any{"n": 0, "v": 1}}, shapeObject)
	s := g.add(fmt.Sprintf("s%d", n), "signal", map[string]any{}, shapeNone)
	g.sends(s, h)
	g.link(p, h, false, "")
	g.link(p, j, false, "")
	g.link(h, j, false, "")
	g.link(j, s, false, "")
	g.more[j].firm, g.more[j].once = true, true
	g.refresh()
}

// kill adds a child that only an interrupt ends, and the interrupt.
func (g *gen) kill(n int) {
	p := g.parent()
	g.refresh()
	if p.passes || p.home != nil {
		return // a key can be awaited once
	}
	id := fmt.Sprintf("${ job.id }/kid%d", n)
	up := fmt.Sprintf("${ job.id }/only/u%d", n)
	descend := g.chance("descend", 50)
	flow := "napper"
	if g.chance("children", 50) {
		flow = "watcher"
		if descend {
			flow = "boss"
		}
	}
	k := g.add(fmt.Sprintf("k%d", n), "await", map[string]any{"flow": flow, "id": id, "input": map[string]any{"up": up}}, shapeNone)
	w := g.add(fmt.Sprintf("u%d", n), "hook", map[string]any{"signal": "topic.only", "key": up}, shapeObject)
	i := g.add(fmt.Sprintf("i%d", n), "interrupt", map[string]any{
		"target": id, "code": pick(g, "code", 410, 444), "descend": descend,
	}, shapeNone)
	g.more[k].fails, g.more[k].once, g.more[w].firm = true, true, true
	g.link(p, k, false, "")
	g.link(p, w, false, "")
	g.link(w, i, false, "")
	g.refresh()
}
