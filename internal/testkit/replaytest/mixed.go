package replaytest

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"

	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
)

// topics and keys are those that the hooks and signals of Mixed share.
var (
	topics = []string{"go", "paid"}
	keys   = []string{"k1", "k2"}
)

// victim is the key of a job beside that of Mixed, which may interrupt it.
const victim = "victim"

//go:embed mixed.yaml
var activities string

// children are the flows that awaits of Mixed start: one that works, one that waits for a signal or a
// time, and one with a child of its own.
var children = []string{
	`{flow: child, version: "1", output: "${ w.output }", activities: {t: {type: trigger}, w: {type: worker, topic: work, retry: {attempts: <1|2>}}}, transitions: {t: [w]}}`,
	`{flow: patient, version: "1", activities: {t: {type: trigger}, h: {type: hook, signal: go, key: k1, sleep: 24h}}, transitions: {t: [h]}}`,
	`{flow: parent, version: "1", activities: {t: {type: trigger}, a: {type: await, flow: child, within: 1h, retry: {attempts: 2}}}, transitions: {t: [a]}}`,
}

// Drawn draws how a family of jobs of a mixed flow is made.
func Drawn(t *rapid.T, mode collation.Mode) Options {
	o := Options{
		Mode: mode, Activities: rapid.IntRange(5, 30).Draw(t, "activities"),
		Choose:    rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3)).IntN,
		Functions: rapid.Bool().Draw(t, "functions"), Trouble: rapid.Bool().Draw(t, "trouble"),
		Effects: rapid.Bool().Draw(t, "effects"), Steps: 300,
	}
	o.Flow, o.Others = Mixed(o), Children(o)
	return o
}

// Children builds the flows that awaits of Mixed start.
func Children(o Options) []*flow.Flow {
	m := &maker{o: o}
	out := make([]*flow.Flow, len(children))
	for i, text := range children {
		out[i] = built(flow.Parse("child.yaml", []byte(m.drawn("", text))))
	}
	return out
}

// Mixed builds a flow of all types of activities: sequences, branches that meet
// again, loops, and hooks that repeat, each in each, as deep as the number of
// activities allows.
func Mixed(o Options) *flow.Flow {
	m := &maker{o: o, left: max(o.Activities, 1)}
	m.text = "flow: mixed\nversion: \"1\"\noutput: \"${ {'all': true} }\"\nactivities:\n  t: {type: trigger}\n"
	end := "t"
	for m.left > 0 {
		end = m.block(end, false)
	}
	m.text += "transitions:\n"
	for _, from := range m.order {
		m.text += fmt.Sprintf("  %s: [%s]\n", from, strings.Join(m.next[from], ", "))
	}
	return built(flow.Parse("mixed.yaml", []byte(m.text)))
}

// maker adds activities to a flow until none is left.
type maker struct {
	o       Options
	text    string
	order   []string            // the sources of transitions
	next    map[string][]string // and those
	left, n int
}

// add adds an activity of a kind.
func (m *maker) add(kind, definition string) string {
	m.n++
	m.left--
	name := fmt.Sprintf("%s%d", kind, m.n)
	m.text += "  " + name + ": " + m.drawn(name, definition) + "\n"
	return name
}

// drawn takes one of each list of alternatives.
func (m *maker) drawn(name, text string) string {
	fn, trouble := "work", "<"
	if m.o.Functions {
		fn = FunctionTopic
	}
	if m.o.Trouble {
		trouble = "|"
	}
	text = strings.NewReplacer("NAME", name, "FN", fn, "RETRY", "retry: {attempts: <1|2|3>, factor: 2, max: 1m}", "TROUBLE|", trouble).Replace(text)
	for {
		before, rest, found := strings.Cut(text, "<")
		if !found {
			return text
		}
		list, after, _ := strings.Cut(rest, ">")
		list, _, _ = strings.Cut(list, "<") // what is in trouble only
		all := strings.Split(list, "|")
		text = before + all[m.o.Choose(len(all))] + after
	}
}

// then adds a transition, with on or when after the comma, if any.
func (m *maker) then(from, to, how string) {
	if m.next == nil {
		m.next = map[string][]string{}
	}
	if m.next[from] == nil {
		m.order = append(m.order, from)
	}
	m.next[from] = append(m.next[from], fmt.Sprintf("{to: %s%s}", to, how))
}

// block adds one activity, or some, after from, and returns the last. Between a
// branching and its join there is no loop.
func (m *maker) block(from string, branched bool, how ...string) string {
	way := strings.Join(how, "")
	choice := m.o.Choose(10)
	switch {
	case m.left >= 4 && choice < 3:
		return m.fork(from, way)
	case !branched && m.left >= 4 && choice < 5:
		return m.loop(from, way)
	case !branched && choice == 5:
		return m.leaf(from, way, `ticks: {type: hook, signal: <go|paid>, key: <k1|k2>, repeat: true, output: "${ signal }"<||, sleep: 48h><|||, within: 96h>}`)
	}
	lines := strings.Split(activities, "\n")[3:] // without the comment
	return m.leaf(from, way, lines[m.o.Choose(len(lines)-1)])
}

// leaf adds one activity. In trouble, an error of it is taken by another, or ends the job.
func (m *maker) leaf(from, way, line string) string {
	kind, definition, _ := strings.Cut(line, ": ")
	name := m.add(kind, definition)
	m.then(from, name, way)
	if m.o.Trouble && m.o.Choose(3) > 0 {
		handler := `{type: worker, topic: work}`
		if m.o.Choose(4) == 0 {
			handler = `{type: interrupt, code: 500, reason: "${ ` + name + `.error.message }", descend: true}`
		}
		m.then(name, m.add("rescue", handler), ", on: error")
	}
	return name
}

// fork branches, lets the branches meet, and returns the join. One branch may
// not be taken; there may be a way around them all.
func (m *maker) fork(from, way string) string {
	fork := m.add("fork", `{type: worker, topic: work}`)
	m.then(from, fork, way)
	join := m.add("join", `{type: <hook|hook, sleep: 1h|worker, topic: work|worker, topic: work>, join: <all|any>}`)
	for n := range 2 {
		when := ""
		if n == 1 && m.o.Choose(2) == 1 {
			when = ", when: " + fork + ".output.again"
		}
		end := m.block(fork, true, when)
		for m.left > 2 && m.o.Choose(3) == 0 {
			end = m.block(end, true)
		}
		m.then(end, join, "")
	}
	if m.o.Choose(3) == 0 {
		m.then(fork, join, `, when: "!`+fork+`.output.again"`)
	}
	return join
}

// loop repeats what is in it as long as its last worker says so.
func (m *maker) loop(from, way string) string {
	pivot := m.add("pivot", `{type: hook, input: {n: 0}}`)
	m.then(from, pivot, way)
	end := m.block(pivot, false)
	last := m.add("last", `{type: worker, topic: work}`)
	m.then(end, last, "")
	m.then(last, m.add("again", `{type: cycle, to: `+pivot+`, max: <1|2|3|4>, input: {n: "${ `+pivot+`.output.n + 1 }"}}`), ", when: "+last+".output.again")
	next := m.add("next", `{type: hook, input: "${ `+last+`.output }"}`)
	m.then(last, next, `, when: "!`+last+`.output.again"`)
	return next
}
