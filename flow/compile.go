package flow

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/flow/internal/expr"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// Parse reads a flow from YAML or JSON, with or without a byte-order mark. file is only used in
// faults, except that a name ending in .json allows only JSON. The error is Faults, with everything
// that is wrong.
func Parse(file string, src []byte) (*Flow, error) {
	src = bytes.TrimPrefix(src, []byte(byteOrderMark))
	c := &collector{file: cmp.Or(file, "flow"), src: src, placed: true}
	if len(src) > MaxDefinitionBytes {
		c.add(position{line: 1, column: 1}, "", "", "a flow has at most %d bytes, this has %d", MaxDefinitionBytes, len(src))
		return nil, c.err()
	}
	if i := firstNonText(src); i >= 0 {
		c.add((&jsonReader{src: src, next: position{line: 1, column: 1}}).place(i), "", "", "not UTF-8 text")
		return nil, c.err()
	}
	return build(c, read(c, src))
}

// byteOrderMark begins the files of some editors, and means nothing there.
const byteOrderMark = "\uFEFF"

// firstNonText is where a source stops being text: at U+0000 or invalid UTF-8.
func firstNonText(src []byte) int {
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == 0 || r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// read prefers JSON, and takes a source that only looks like JSON for YAML.
func read(c *collector, src []byte) *node {
	if strings.EqualFold(filepath.Ext(c.file), ".json") {
		return readJSON(src, c)
	}
	if bytes.HasPrefix(bytes.TrimSpace(src), []byte("{")) {
		quiet := &collector{placed: true}
		if n := readJSON(src, quiet); n != nil {
			return n
		}
	}
	return readYAML(src, c)
}

// ErrNotCanonical is the error of FromCanonical for bytes that this build would not
// store.
var ErrNotCanonical = errors.New("the stored flow is not in canonical form: it was changed, or written by another build; deploy it again under a new version")

// FromCanonical compiles a flow from its stored canonical form, with the same result
// every time. The error is Faults or ErrNotCanonical.
func FromCanonical(src []byte) (*Flow, error) {
	c := &collector{src: src, placed: true, builtin: true}
	if len(src) > MaxDefinitionBytes {
		c.add(position{line: 1, column: 1}, "", "", "a flow has at most %d bytes, this has %d", MaxDefinitionBytes, len(src))
		return nil, c.err()
	}
	f, err := build(c, readJSON(src, c))
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(f.canonical, src) {
		return nil, ErrNotCanonical
	}
	return f, nil
}

// build makes a flow of nodes; root is nil if reading failed.
func build(c *collector, root *node) (*Flow, error) {
	if root == nil || !c.unique(root, &trail{}, 1) {
		return nil, c.err()
	}
	def := decoder{c}.flow(root)
	if def == nil {
		return nil, c.err()
	}
	f := &Flow{name: def.name, version: def.version, identity: def.identity, expire: def.expire}
	f.schema = c.schema(def.input)
	g := newGraph(c, def)
	k := compiler{
		graph: g, expressions: expr.NewCompiler(), constants: NewBudget(nil),
		warned: collector{file: c.file, src: c.src, placed: c.placed},
	}
	k.activities()
	f.output, f.outputNeeds = k.template(def.output, nil, "output")
	k.schedule(f, def.schedule)
	if err := c.err(); err != nil {
		return nil, err
	}
	f.adopt(g)
	_ = k.warned.err() // sorts them
	f.warnings = k.warned.faults
	text, err := canonical.Payload(def.appendJSON(nil))
	if err == nil && len(text) > MaxDefinitionBytes {
		c.add(root.position, "", "", "the canonical form has more than %d bytes", MaxDefinitionBytes)
		err = c.err()
	}
	if err != nil {
		return nil, err
	}
	f.canonical, f.digest = bytes.Clone(text), sha256.Sum256(text)
	return f, nil
}

// adopt takes the activities of a graph without faults, in an order that does not depend
// on their order in the source.
func (f *Flow) adopt(g *graph) {
	f.byName = make(map[string]*Activity, len(g.all))
	for i, v := range g.ordered() {
		v.Index = i
		f.activities = append(f.activities, v.Activity)
		f.byName[v.Name] = v.Activity
	}
	f.trigger = f.activities[0]
	for _, a := range f.activities {
		for _, t := range a.Out {
			t.To.In = append(t.To.In, t)
		}
	}
}

// compiler compiles the expressions of a graph.
type compiler struct {
	*graph
	expressions *expr.Compiler
	warned      collector
	constants   *Budget          // of the values that mention nothing, which are looked at once
	runs        map[*vertex]bool // see certain
}

func (k *compiler) activities() {
	for _, v := range k.all {
		path := join("activities", v.Name)
		v.input, v.inputNeeds = k.template(v.def.input, &reader{vertex: v, element: v.HasEach}, path+".input")
		v.output, v.mapNeeds = k.template(v.def.output,
			&reader{vertex: v, self: true, signal: v.Type == TypeHook && v.Topic != ""}, path+".output")
		k.values(v, path)
		k.warnClass(v, path+".class")
		for _, e := range v.out {
			t := &Transition{From: v.Activity, To: e.to.Activity, OnError: e.def.onError}
			if e.def.when != nil {
				k.condition(t, e.def, v, strings.TrimSuffix(e.def.path, ".to")+".when")
			}
			v.Out = append(v.Out, t)
		}
	}
}

// values compiles the other expressions that the Leg1 of an activity evaluates.
func (k *compiler) values(v *vertex, path string) {
	if len(v.def.values) > 0 {
		v.Activity.values = make(map[string]*expr.Template, len(v.def.values))
	}
	for _, value := range v.def.values {
		t, needs := k.template(value.node, &reader{vertex: v}, join(path, value.key))
		v.Activity.values[value.key] = t
		v.need(needs)
	}
	if n := v.def.each; n != nil {
		v.each, v.eachSource = k.bare(n, &reader{vertex: v}, path+".each")
		v.def.eachText = v.eachSource
		if v.each == nil {
			return
		}
		if !v.each.IsList() {
			k.within(n, 0, path+".each", v.eachSource, "must be a list")
		}
		v.need(needsOf(v.each.Refs()))
	}
}

// need adds names to those that Leg1 mentions.
func (a *Activity) need(names []string) {
	if len(names) > 0 {
		all := slices.Concat(a.inputNeeds, names)
		slices.Sort(all)
		a.inputNeeds = slices.Compact(all)
	}
}

// schedule computes the input of the jobs that the clock starts.
func (k *compiler) schedule(f *Flow, def *scheduleDef) {
	if def == nil {
		return
	}
	f.schedule = &Schedule{Cron: def.cron, Zone: def.zone, CatchUp: def.catchUp}
	t, _ := k.template(def.input, &reader{alone: true}, "schedule.input")
	if t == nil {
		return
	}
	input, err := t.Eval(source{scope: constant{NewBudget(nil)}})
	if err == nil {
		err = f.CheckInput(input, NewBudget(nil))
	}
	if err != nil {
		k.add(def.input.position, "schedule.input", "", "%s", err)
	}
	f.schedule.Input = bytes.Clone(input)
}

// bare compiles an expression with or without ${ } around it, and returns its text.
func (k *compiler) bare(n *node, r *reader, path string) (*expr.Program, string) {
	source, offset := n.text, 0
	if pieces, _ := split(source); len(pieces) == 1 && pieces[0].expression {
		source, offset = pieces[0].text, pieces[0].offset
	}
	trimmed := strings.TrimSpace(source)
	offset += utf8.RuneCountInString(source[:strings.Index(source, trimmed)])
	return k.expression(n, offset, trimmed, r, &trail{name: path}), trimmed
}

// condition compiles a `when`.
func (k *compiler) condition(t *Transition, def *transitionDef, v *vertex, path string) {
	t.when, t.whenSource = k.bare(def.when, &reader{vertex: v, self: true}, path)
	def.condition = t.whenSource
	if t.when == nil {
		return
	}
	if !t.when.IsBool() {
		k.within(def.when, 0, path, t.whenSource, "a condition must be true or false")
	}
	t.needs = needsOf(t.when.Refs())
}

func (k *compiler) expression(n *node, offset int, source string, r *reader, at *trail) *expr.Program {
	program, problems := k.expressions.Compile(source, k.scope(r))
	for _, p := range problems {
		text := p.Text
		if text == "" {
			text = source
		}
		k.within(n, offset+p.Offset, at.String(), text, "%s", p.Message)
	}
	if r == nil && program != nil {
		k.warnOutput(n, offset, source, at, program)
	}
	return program
}

// needsOf lists the activities among refs, sorted.
func needsOf(refs []expr.Ref) []string {
	var names []string
	for _, r := range refs {
		if !slices.Contains(scopeWords, r.Name) {
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
