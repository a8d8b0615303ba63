package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/view"
)

// maxNodes bounds the activities of a graph that is drawn; a larger one is a list.
const maxNodes = 300

// Sizes of a graph, in its own units.
const (
	nodeWidth  = 148
	nodeHeight = 46
	nodeGap    = 14
	bendWidth  = 12
	layerGap   = 34
	margin     = 14
)

// node is an activity of a graph, or the bend of a line that passes a layer.
type node struct {
	Standing             view.Standing
	Name, Kind, Detail   string
	Times                int // that it was passed, in a loop; 0: once at most
	X, Y, Width          int
	layer                int
	place                float64
	above, below         []*node
	Bend                 bool
	Middle, Line1, Line2 int // where the texts stand
}

// edge is a transition, as a path.
type edge struct {
	Path, Class, Text string
	// Label stands at a place of the path; "": it has none. Anchor is which end of it.
	Label, Anchor  string
	LabelX, LabelY int
}

// graph is the picture of a flow with the state of each activity (O8).
type graph struct {
	Nodes         []*node
	Edges         []edge
	Left          int // where the picture begins; below 0 beside a cycle
	Width, Height int
	List          []view.Standing // where there are too many to draw
}

// graphOf lays a flow out from the trigger down: an activity stands a layer below the last of
// those that lead to it.
func graphOf(f *flow.Flow, standings []view.Standing) *graph {
	if f == nil || len(standings) != len(f.Activities()) {
		return nil
	}
	if len(standings) > maxNodes {
		list := slices.Clone(standings)
		slices.SortStableFunc(list, func(a, b view.Standing) int { return cmp.Compare(worst(a.State), worst(b.State)) })
		return &graph{List: list}
	}
	g, acts := &graph{}, f.Activities()
	nodes := make([]*node, len(standings))
	for i, a := range acts {
		st := &standings[i]
		nodes[i] = &node{Standing: *st, Name: a.Name, Kind: kindOf(a, st), Detail: detail(a, st), Width: nodeWidth}
		if n := passes(a, st); n > 1 {
			nodes[i].Times = n
		}
	}
	for again := true; again; { // as often as the longest path has activities: there is no cycle
		again = false
		for i := range standings {
			for _, t := range acts[i].Out {
				if to := nodes[t.To.Index]; to.layer <= nodes[i].layer {
					to.layer, again = nodes[i].layer+1, true
				}
			}
		}
	}
	var layers [][]*node
	put := func(n *node) {
		for len(layers) <= n.layer {
			layers = append(layers, nil)
		}
		layers[n.layer] = append(layers[n.layer], n)
		g.Nodes = append(g.Nodes, n)
	}
	for _, n := range nodes {
		put(n)
	}
	chains := map[*flow.Transition][]*node{}
	for i := range standings {
		for _, t := range acts[i].Out {
			chain := []*node{nodes[i]}
			for l := nodes[i].layer + 1; l < nodes[t.To.Index].layer; l++ {
				bend := &node{Bend: true, Width: bendWidth, layer: l}
				put(bend)
				chain = append(chain, bend)
			}
			chain = append(chain, nodes[t.To.Index])
			for n := range len(chain) - 1 {
				chain[n].below, chain[n+1].above = append(chain[n].below, chain[n+1]),
					append(chain[n+1].above, chain[n])
			}
			chains[t] = chain
		}
	}
	g.arrange(layers)
	for _, a := range acts {
		g.lines(standings, nodes, a, chains)
	}
	g.Width -= g.Left
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *node) bool { return n.Bend })
	return g
}

// worst puts what failed or waits for a person first, and what was not reached last.
func worst(s view.State) int {
	switch s {
	case view.Failed, view.Abandoned:
		return 0
	case view.Stuck:
		return 1
	case view.Running, view.Waiting:
		return 2
	case view.Done:
		return 3
	}
	return 4
}

// sweeps is how often the order within the layers is improved.
const sweeps = 8

// arrange orders each layer by the places of its neighbours, so that few lines cross, and then
// places everything.
func (g *graph) arrange(layers [][]*node) {
	for _, layer := range layers {
		for i, n := range layer {
			n.place = float64(i)
		}
	}
	for s := range sweeps {
		for i := range layers {
			layer, neighbours := layers[i], func(n *node) []*node { return n.above }
			if s%2 == 1 {
				layer, neighbours = layers[len(layers)-1-i], func(n *node) []*node { return n.below }
			}
			weight := make(map[*node]float64, len(layer))
			for _, n := range layer {
				weight[n] = n.place
				if all := neighbours(n); len(all) > 0 {
					sum := 0.0
					for _, x := range all {
						sum += x.place
					}
					weight[n] = sum / float64(len(all))
				}
			}
			slices.SortStableFunc(layer, func(a, b *node) int { return cmp.Compare(weight[a], weight[b]) })
			for n := range layer {
				layer[n].place = float64(n) - float64(len(layer)-1)/2
			}
		}
	}
	widest := 0
	widths := make([]int, len(layers))
	for i, layer := range layers {
		for _, n := range layer {
			widths[i] += n.Width + nodeGap
		}
		widths[i] -= nodeGap
		widest = max(widest, widths[i])
	}
	for i, layer := range layers {
		x := margin + (widest-widths[i])/2
		for _, n := range layer {
			n.X, n.Y = x, margin+i*(nodeHeight+layerGap)
			n.Middle, n.Line1, n.Line2 = n.X+n.Width/2, n.Y+19, n.Y+36
			x += n.Width + nodeGap
		}
	}
	g.Width, g.Height = widest+2*margin, len(layers)*(nodeHeight+layerGap)-layerGap+2*margin
}

// lines draws what leaves an activity: its transitions, and the way back of a cycle.
func (g *graph) lines(standings []view.Standing, nodes []*node, a *flow.Activity, chains map[*flow.Transition][]*node) {
	for _, t := range a.Out {
		var path strings.Builder
		chain := chains[t]
		fmt.Fprintf(&path, "M%d %d", chain[0].Middle, chain[0].Y+nodeHeight)
		for n := range len(chain) - 1 {
			from, to := chain[n], chain[n+1]
			y := from.Y + nodeHeight
			if from.Bend {
				fmt.Fprintf(&path, " L%d %d", from.Middle, y)
			}
			half := y + layerGap/2
			fmt.Fprintf(&path, " C%d %d %d %d %d %d", from.Middle, half, to.Middle, half, to.Middle, to.Y)
		}
		e := edge{Path: path.String(), Class: "edge", Text: a.Name + " → " + t.To.Name}
		switch from, to := standings[a.Index].State, standings[t.To.Index].State; {
		case t.OnError:
			e.Class, e.Text = "edge error", e.Text+", on error"
		case from == view.NotReached || to == view.NotReached || to == view.Skipped ||
			from == view.Skipped:
			e.Class = "edge idle"
		}
		g.Edges = append(g.Edges, e)
	}
	if a.Type == flow.TypeCycle && a.To != nil {
		g.back(nodes[a.Index], nodes[a.To.Index], standings[a.Index].Instances)
	}
}

// back draws the way of a cycle to its pivot, with how often it was gone: between the layers, and past
// them on the nearer side.
func (g *graph) back(from, to *node, times int) {
	const out, room = 18, 34 // how far it passes the layers, and the room of its label
	left, right := from.X, from.X+from.Width
	for _, n := range g.Nodes {
		if n.layer >= to.layer && n.layer < from.layer {
			left, right = min(left, n.X), max(right, n.X+n.Width)
		}
	}
	side, leaves, comes := left-out, from.Middle-nodeWidth/4, to.Middle-nodeWidth/4
	label, anchor, end := side-4, "end", side-margin
	if from.Middle > to.Middle {
		side, leaves, comes = right+out, from.Middle+nodeWidth/4, to.Middle+nodeWidth/4
		label, anchor, end = side+4, "start", side+margin
	}
	e := edge{
		Path:  fmt.Sprintf("M%d %d V%d H%d V%d H%d V%d", leaves, from.Y, from.Y-out/2, side, to.Y-out, comes, to.Y),
		Class: "edge back", Text: from.Name + " goes back to " + to.Name,
	}
	if times > 0 {
		e.Text += ", " + counted(times, "time")
		e.Label, e.Anchor, e.LabelX, e.LabelY = fmt.Sprint("×", times), anchor, label, (from.Y+to.Y)/2
		end += room * (end - side) / margin
	}
	g.Edges = append(g.Edges, e)
	g.Left, g.Width = min(g.Left, end), max(g.Width, end)
}

// kindOf is the type of an activity in a word or two.
func kindOf(a *flow.Activity, st *view.Standing) string {
	text := string(a.Type)
	switch {
	case a.Topic != "":
		text += " " + a.Topic
	case a.Type == flow.TypeCycle && a.To != nil:
		text += " ↩ " + a.To.Name
	}
	if a.Join != "" {
		text = "join " + string(a.Join) + ", " + text
	}
	if st.Elements > 0 { // how far a list is says more than its type
		text = fmt.Sprintf("%s, %d of %d", a.Topic, st.Ended, st.Elements)
	}
	const most = 23
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	return text
}

// passes is how often an activity was passed. A join has an instance in each pass of a loop, also in
// those that do not come to it.
func passes(a *flow.Activity, st *view.Standing) int {
	if a.Join != "" {
		return st.Passes
	}
	return max(st.Passes, st.Instances)
}

// detail adds counts and codes to the state of an activity.
func detail(a *flow.Activity, st *view.Standing) string {
	text := string(st.State)
	if st.State == view.Failed {
		text += fmt.Sprintf(", code %d", st.Code)
	}
	switch {
	case st.Elements > 0:
		text += fmt.Sprintf(", %d of %d", st.Ended, st.Elements)
	case passes(a, st) > 1:
		text += ", " + counted(passes(a, st), "pass")
	}
	if st.Suspended > 0 {
		text += ", suspended"
	}
	if a.Join != "" && st.State != view.NotReached {
		text += fmt.Sprintf(", %d of %d arrived", st.Arrived, len(a.In))
	}
	return text
}
