package flow

// dominators finds the immediate dominator of every activity: the last activity that all
// paths to it share (1.10). In topological order that is the nearest common dominator of
// the sources of its transitions.
func (g *graph) dominators() {
	size := make([]int, len(g.sorted)) // number of vertices that each dominates
	for _, v := range g.sorted {
		for _, e := range v.in {
			switch {
			case e.dropped || !e.from.reached:
			case v.dominator == nil:
				v.dominator = e.from
			default:
				v.dominator = nearest(v.dominator, e.from)
			}
		}
		v.hang()
	}
	for i := len(g.sorted) - 1; i >= 0; i-- {
		v := g.sorted[i]
		size[i]++
		if v.dominator != nil {
			size[v.dominator.order] += size[i]
		}
	}
	next := make([]int, len(g.sorted)) // start of the interval of the next child
	for i, v := range g.sorted {
		if d := v.dominator; d != nil {
			v.enter = next[d.order]
			next[d.order] += size[i]
		}
		v.leave = v.enter + size[i] - 1
		next[i] = v.enter + 1
	}
}

// hang puts a vertex below its dominator and sets its jump. The jump spans the two jumps
// above together if they have the same length, so that every way up the tree has few
// steps.
func (v *vertex) hang() {
	d := v.dominator
	if d == nil {
		v.jump = v
		return
	}
	v.Parent, v.Depth = d.Activity, d.Depth+1
	v.jump = d
	if d.Depth-d.jump.Depth == d.jump.Depth-d.jump.jump.Depth {
		v.jump = d.jump.jump
	}
}

// nearest is the nearest common dominator of two vertices.
func nearest(a, b *vertex) *vertex {
	if a.Depth < b.Depth {
		a, b = b, a
	}
	for a.Depth > b.Depth {
		if a.jump.Depth >= b.Depth {
			a = a.jump
		} else {
			a = a.dominator
		}
	}
	for a != b {
		if a.jump != b.jump {
			a, b = a.jump, b.jump
		} else {
			a, b = a.dominator, b.dominator
		}
	}
	return a
}

// blockSize is how many activities leads computes at once.
const blockSize = 64

// leads reports whether transitions lead from a to b, or a is b. In a tree the dominators
// tell. Otherwise it computes a block of activities that are consecutive in topological
// order: one pass over the later vertices finds, in a bit set for each, which of the
// block lead there. The block is kept.
func (g *graph) leads(a, b *vertex) bool {
	if a.Dominates(b.Activity) {
		return true
	}
	if a.order >= b.order || b.Dominates(a.Activity) {
		return false
	}
	number := a.order / blockSize
	from := number * blockSize
	block, ok := g.blocks[number]
	if !ok {
		block = make([]uint64, len(g.sorted)-from)
		for i := range block {
			v := g.sorted[from+i]
			if i < blockSize {
				block[i] = 1 << i
			}
			for _, e := range v.in {
				if before := e.from.order - from; !e.dropped && e.from.reached && before >= 0 {
					block[i] |= block[before]
				}
			}
		}
		g.blocks[number] = block
	}
	return block[b.order-from]&(1<<(a.order-from)) != 0
}
