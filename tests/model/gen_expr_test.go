package model

import "fmt"

// known are the activities that expressions of a may mention: what is decided
// whenever it runs.
func (g *gen) known(a *act, self bool) []*act {
	var out []*act
	for _, p := range g.d.acts {
		if g.more[a].sure.has(p) || self && p == a {
			out = append(out, p)
		}
	}
	return out
}

// read is a small number that depends on the activity, whatever became of it.
func (g *gen) read(a *act) string {
	switch {
	case g.chance("code", 10) || g.more[a].shape == shapeNone:
		return a.name + ".code"
	case g.more[a].shape == shapeList:
		return fmt.Sprintf("(%s.output == null ? 7 : size(%s.output))", a.name, a.name)
	case a.typ == "trigger":
		return a.name + ".output.v"
	}
	return fmt.Sprintf("(%s.output == null ? 3 : %s.output.v)", a.name, a.name)
}

// number is an expression for a number from 0 to 9.
func (g *gen) number(a *act, self bool) string {
	known := g.known(a, self)
	from := func() string { return g.read(known[len(known)-1-g.upTo("known", len(known)-1)]) }
	switch g.weighted("number", "literal", 20, "one", 50, "two", 30) {
	case "one":
		return "(" + from() + ") % 10"
	case "two":
		return "(" + from() + " + 2 * " + from() + ") % 10"
	}
	return fmt.Sprint(g.upTo("literal", 9))
}

// value is a mapped number.
func (g *gen) value(a *act, self bool) any { return "${ " + g.number(a, self) + " }" }

// condition is one for transitions that leave a.
func (g *gen) condition(a *act) string {
	known := g.known(a, true)
	x := known[len(known)-1-g.upTo("of", len(known)-1)]
	switch g.weighted("condition", "number", 50, "code", 20, "skipped", 15, "by", 10, "both", 5) {
	case "code":
		return x.name + ".code == 200"
	case "skipped":
		return pick(g, "not", "!", "") + x.name + ".skipped"
	case "by":
		if x.typ == "hook" && !g.more[x].any {
			return x.name + ".by == 'timer'"
		}
	case "both":
		return fmt.Sprintf("%s > 3 && %s.code != 503 || %s == 2", g.number(a, true), x.name, g.number(a, true))
	}
	return fmt.Sprintf("%s %s", g.number(a, true), pick(g, "compare", "< 6", "> 3", "!= 5", "% 2 == 0"))
}

// raw is an expression that fails where its activity has no output.
func (g *gen) raw(a *act) string {
	for _, x := range g.known(a, false) {
		if g.more[x].shape == shapeObject {
			return "${ " + x.name + ".output.v }"
		}
	}
	return "${ start.output.none }"
}
