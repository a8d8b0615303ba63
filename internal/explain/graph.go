package explain

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/view"
)

// Limits of a drawn graph.
const (
	// MaxLines is the default number of lines.
	MaxLines = 200
	// maxNesting bounds how deep branches are drawn.
	maxNesting = 12
)

// Style says how a graph is drawn.
type Style struct {
	// Color uses the colours of a terminal.
	Color bool
	// Lines bounds the lines; 0 means MaxLines. Activities beyond are counted.
	Lines int
}

// Graph draws the flow with the state of each activity, one line each. A single successor
// stands below its activity; several are drawn as branches. A join stands below the
// activity at which its branches parted (its immediate dominator), and the branches name
// it where they end. all has the activities of the flow, by their index; without a flow the result is
// empty.
func Graph(f *flow.Flow, all []view.Standing, style Style) string {
	if f == nil || len(all) != len(f.Activities()) {
		return ""
	}
	d := &drawing{acts: f.Activities(), all: all, style: style, most: style.Lines}
	if d.most <= 0 {
		d.most = MaxLines
	}
	d.joins = make([][]*flow.Activity, len(d.all))
	for _, a := range d.acts {
		if a.Join != "" {
			at := a.Parent.Index
			d.joins[at] = append(d.joins[at], a)
		}
	}
	d.below(f.Trigger(), "", "", 0)
	return d.text()
}

// drawing collects the lines of a graph.
type drawing struct {
	acts  []*flow.Activity
	all   []view.Standing
	style Style
	most  int
	joins [][]*flow.Activity // joins by the index of their dominator, in order of their own index
	lines []line
	left  []view.State // of activities without a line
}

type line struct {
	tree  string // with the name
	kind  string
	state *view.Standing // nil for a note
	act   *flow.Activity // of the state
}

// below draws an activity and all that it dominates. first is the prefix of its own line,
// rest the prefix of the lines below.
func (d *drawing) below(a *flow.Activity, first, rest string, nesting int) {
	for a != nil {
		d.activity(a, first)
		first = rest
		var next *flow.Activity
		outs, joins := a.Out, d.joins[a.Index]
		if len(outs) == 1 && outs[0].To.Join == "" && len(joins) == 0 {
			next = outs[0].To
		} else {
			d.branches(outs, rest, nesting)
		}
		for i, join := range joins {
			if i == len(joins)-1 {
				next = join
				break
			}
			d.below(join, rest, rest, nesting)
		}
		a = next
	}
}

// branches draws the successors of an activity side by side.
func (d *drawing) branches(outs []*flow.Transition, rest string, nesting int) {
	for i, t := range outs {
		first, next := rest+"├─ ", rest+"│  "
		if i == len(outs)-1 {
			first, next = rest+"└─ ", rest+"   "
		}
		switch {
		case t.To.Join != "":
			d.note(first + "→ " + t.To.Name + d.taken(t))
		case nesting == maxNesting:
			d.fold(t.To)
		default:
			d.below(t.To, first, next, nesting+1)
		}
	}
}

// taken says whether a transition to a join was certainly skipped, because of how its
// activity ended, or because the join itself was skipped.
func (d *drawing) taken(t *flow.Transition) string {
	switch from := d.all[t.From.Index].State; {
	case from == view.Skipped, d.all[t.To.Index].State == view.Skipped, from == view.Done && t.OnError,
		from == view.Failed && !t.OnError:
		return " (skipped)"
	case t.OnError:
		return " (on error)"
	}
	return ""
}

func (d *drawing) note(text string) {
	if len(d.lines) < d.most {
		d.lines = append(d.lines, line{tree: text})
	}
}

func (d *drawing) activity(a *flow.Activity, first string) {
	st := &d.all[a.Index]
	if len(d.lines) >= d.most {
		d.left = append(d.left, st.State)
		return
	}
	d.lines = append(d.lines, line{tree: first + symbols[st.State].text + " " + a.Name, kind: kind(a), state: st, act: a})
}

// fold counts an activity and all that it dominates, without drawing them.
func (d *drawing) fold(a *flow.Activity) {
	for open := []*flow.Activity{a}; len(open) > 0; {
		a, open = open[len(open)-1], open[:len(open)-1]
		d.left = append(d.left, d.all[a.Index].State)
		open = append(open, d.joins[a.Index]...)
		for _, t := range a.Out {
			if t.To.Join == "" {
				open = append(open, t.To)
			}
		}
	}
}

// kind is the type of an activity, with its topic and options.
func kind(a *flow.Activity) string {
	text := string(a.Type)
	switch {
	case a.Type == flow.TypeCycle:
		text += " ↩ " + a.To.Name
	case a.PassThrough() && a.Pivot:
		text += ", pivot"
	case a.Topic != "":
		text += " " + a.Topic
	}
	if a.HasSleep {
		text += ", timer"
	}
	if a.Join != "" {
		text += ", join " + string(a.Join)
	}
	if len(a.In) == 1 && a.In[0].OnError {
		text += ", on error"
	}
	return text
}

// symbols stand before the names, in the given terminal colours.
var symbols = map[view.State]struct{ text, color string }{
	view.NotReached: {"○", "2"},
	view.Skipped:    {"⊘", "2"},
	view.Running:    {"▶", "36"},
	view.Waiting:    {"●", "33"},
	view.Stuck:      {"!", "1;31"},
	view.Done:       {"✓", "32"},
	view.Failed:     {"✗", "31"},
	view.Abandoned:  {"◌", "31"},
}

// Symbol stands before the name of an activity in that state.
func Symbol(s view.State) string { return symbols[s].text }

// text aligns the lines in columns.
func (d *drawing) text() string {
	var tree, kinds int
	for i := range d.lines {
		if l := &d.lines[i]; l.state != nil {
			tree, kinds = max(tree, utf8.RuneCountInString(l.tree)), max(kinds, utf8.RuneCountInString(l.kind))
		}
	}
	var b strings.Builder
	for i := range d.lines {
		l := &d.lines[i]
		b.WriteString(l.tree)
		if l.state != nil {
			b.WriteString(strings.Repeat(" ", tree-utf8.RuneCountInString(l.tree)+2))
			b.WriteString(l.kind)
			b.WriteString(strings.Repeat(" ", kinds-utf8.RuneCountInString(l.kind)+2))
			b.WriteString(d.color(l.state.State, string(l.state.State)))
			b.WriteString(detail(l.state, l.act))
		}
		b.WriteByte('\n')
	}
	if len(d.left) > 0 {
		fmt.Fprintf(&b, "… and %s%s\n", activities(len(d.left)), d.leftStates())
	}
	return b.String()
}

func activities(n int) string {
	if n == 1 {
		return "1 more activity"
	}
	return fmt.Sprintf("%d more activities", n)
}

// leftStates counts the activities without a line by state.
func (d *drawing) leftStates() string {
	count := map[view.State]int{}
	for _, s := range d.left {
		count[s]++
	}
	var parts []string
	for _, s := range []view.State{
		view.Stuck, view.Failed, view.Waiting, view.Running, view.Abandoned, view.Done, view.Skipped, view.NotReached,
	} {
		if n := count[s]; n > 0 {
			parts = append(parts, d.color(s, fmt.Sprintf("%d %s", n, s)))
		}
	}
	return ": " + strings.Join(slices.Clip(parts), ", ")
}

func (d *drawing) color(s view.State, text string) string {
	if !d.style.Color {
		return text
	}
	return "\x1b[" + symbols[s].color + "m" + text + "\x1b[0m"
}
