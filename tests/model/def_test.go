package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// def is the definition of a flow as its text says it, with what follows from its
// shape alone.
type def struct {
	name     string
	required []string // of its input's schema
	output   any
	acts     []*act // an activity stands behind all that lead to it
	byName   map[string]*act
}

// act is an activity. Its sets are bits by index.
type act struct {
	index     int
	name, typ string
	props     map[string]any
	in, out   []*edge
	above     set  // what leads to it
	doms      set  // what every way to it goes through, itself included
	home      *act // the innermost pass-making activity that dominates it, if any
	passes    bool // a pivot, or a hook that repeats
}

type edge struct {
	from, to *act
	onError  bool
	when     string
}

// maxActs is the size of a set.
const maxActs = 64

type set uint64

func (s set) has(a *act) bool       { return s>>a.index&1 == 1 }
func (s set) with(a *act) set       { return s | 1<<a.index }
func (a *act) text(k string) string { s, _ := a.props[k].(string); return s }
func (a *act) flag(k string, def bool) bool {
	if v, ok := a.props[k].(bool); ok {
		return v
	}
	return def
}

func (a *act) count(k string, def int) int {
	if v, ok := a.props[k].(int); ok {
		return v
	}
	return def
}

// length is the time of a literal duration; 0 for none.
func (a *act) length(k string) time.Duration { return lengthOf(a.text(k)) }

func lengthOf(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// ends says that nothing follows the activity in the graph.
func (a *act) ends() bool { return a.typ == "cycle" || a.typ == "interrupt" && a.text("target") == "" }

// through says that a hook waits for nothing.
func (a *act) through() bool {
	return a.typ == "hook" && a.text("sleep") == "" && a.text("signal") == ""
}

// attempts is the number of attempts that the activity has.
func (a *act) attempts() int {
	n := 3
	if a.typ == "await" {
		n = 1
	}
	if retry, ok := a.props["retry"].(map[string]any); ok {
		if v, ok := retry["attempts"].(int); ok {
			n = v
		}
	}
	return n
}

// parse reads the text of a flow.
func parse(text string) *def {
	var raw struct {
		Flow        string
		Version     string
		Input       struct{ Required []string }
		Output      any
		Activities  map[string]map[string]any
		Transitions map[string][]any
	}
	if err := yaml.Unmarshal([]byte(text), &raw); err != nil {
		panic(fmt.Sprintf("model: %v in\n%s", err, text))
	}
	d := &def{name: raw.Flow, required: raw.Input.Required, output: plain(raw.Output), byName: map[string]*act{}}
	for _, name := range sorted(raw.Activities) {
		props := plain(raw.Activities[name]).(map[string]any)
		a := &act{name: name, props: props}
		a.typ = a.text("type")
		d.acts = append(d.acts, a)
		d.byName[name] = a
	}
	for _, from := range sorted(raw.Transitions) {
		for _, t := range raw.Transitions[from] {
			e := &edge{from: d.byName[from]}
			switch t := plain(t).(type) {
			case string:
				e.to = d.byName[t]
			case map[string]any:
				e.to = d.byName[t["to"].(string)]
				e.onError = t["on"] == "error"
				e.when, _ = t["when"].(string)
			}
			e.from.out, e.to.in = append(e.from.out, e), append(e.to.in, e)
		}
	}
	d.analyse()
	return d
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// analyse orders the activities and finds dominators and pass-makers.
func (d *def) analyse() {
	var order []*act
	seen := map[*act]bool{}
	var visit func(a *act)
	visit = func(a *act) {
		if seen[a] {
			return
		}
		seen[a] = true
		for _, e := range a.in {
			visit(e.from)
		}
		order = append(order, a)
	}
	for _, a := range d.acts {
		visit(a)
	}
	if len(order) > maxActs {
		panic("model: too many activities")
	}
	d.acts = order
	for i, a := range d.acts {
		a.index = i
		a.passes = a.flag("repeat", false)
	}
	for _, a := range d.acts {
		if to := d.byName[a.text("to")]; a.typ == "cycle" && to != nil {
			to.passes = true
		}
		a.dominators()
	}
	for _, a := range d.acts {
		a.home = d.homeOf(a)
	}
}

// dominators finds what is above, from what is known of the parents.
func (a *act) dominators() {
	a.above, a.doms = 0, 0
	for i, e := range a.in {
		a.above |= e.from.above.with(e.from)
		if i == 0 {
			a.doms = e.from.doms
		}
		a.doms &= e.from.doms
	}
	a.doms = a.doms.with(a)
}

func (d *def) homeOf(a *act) *act {
	var home *act
	for _, p := range d.acts { // a dominator stands behind its own dominators
		if p.passes && p != a && a.doms.has(p) {
			home = p
		}
	}
	return home
}

// idom is the immediate dominator.
func (d *def) idom(a *act) *act {
	var idom *act
	for _, p := range d.acts {
		if p != a && a.doms.has(p) {
			idom = p
		}
	}
	return idom
}

// legal says that no join has a pass-maker between itself and its dominator.
func (d *def) legal() bool {
	for _, j := range d.acts {
		if len(j.in) < 2 {
			continue
		}
		idom := d.idom(j)
		for _, p := range d.acts {
			if p.passes && p != idom && j.above.has(p) && p.above.has(idom) {
				return false
			}
		}
	}
	return true
}

// refuses says that the schema does not take the input.
func (d *def) refuses(input any) bool {
	in, _ := input.(map[string]any)
	return slices.ContainsFunc(d.required, func(k string) bool { _, has := in[k]; return !has })
}

// yaml writes the flow as a person would.
func (d *def) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "flow: %s\nversion: \"1\"\n", d.name)
	if d.output != nil {
		fmt.Fprintf(&b, "output: %s\n", spell(d.output))
	}
	if len(d.required) > 0 {
		fmt.Fprintf(&b, "input: {type: object, required: [%s]}\n", strings.Join(d.required, ", "))
	}
	b.WriteString("activities:\n")
	for _, a := range d.acts {
		fmt.Fprintf(&b, "  %s: %s\n", a.name, spell(a.props))
	}
	begun := false
	for _, a := range d.acts {
		if len(a.out) == 0 {
			continue
		}
		if !begun {
			b.WriteString("transitions:\n")
			begun = true
		}
		fmt.Fprintf(&b, "  %s:\n", a.name)
		for _, e := range a.out {
			fmt.Fprintf(&b, "    - %s\n", e.yaml())
		}
	}
	return b.String()
}

func (e *edge) yaml() string {
	if !e.onError && e.when == "" {
		return e.to.name
	}
	t := map[string]any{"to": e.to.name}
	if e.onError {
		t["on"] = "error"
	}
	if e.when != "" {
		t["when"] = e.when
	}
	return spell(t)
}
