package flow

// joins marks the activities at which transitions meet (1.10).
func (g *graph) joins() {
	for i := len(g.sorted) - 1; i >= 0; i-- {
		v := g.sorted[i]
		incoming := 0
		for _, e := range v.in {
			if e.dropped || !e.from.reached {
				continue
			}
			if incoming++; incoming == MaxIn+1 {
				g.at(e.def.at, e.def.path, "more than %d transitions lead to %s; let some of them meet before it", MaxIn, v.Name)
			}
		}
		if incoming > 1 {
			if v.def.join == "" {
				v.def.join = JoinAll
			}
			v.Join = v.def.join
		} else if v.def.joinAt != nil {
			g.at(v.def.joinAt, join("activities", v.Name)+".join", "only one transition leads to %s: nothing meets there", v.Name)
		}
		v.LeadsToJoin = v.Join != ""
		for _, e := range v.out {
			v.LeadsToJoin = v.LeadsToJoin || !e.dropped && e.to.LeadsToJoin
		}
	}
}

// pivots marks the hooks that cycles return to (1.11).
func (g *graph) pivots() {
	for _, v := range g.all {
		if v.Type != TypeCycle || v.def.to == nil {
			continue
		}
		at, path := v.def.to, join("activities", v.Name)+".to"
		to := g.byName[at.text]
		switch {
		case at.kind != kindString:
			g.at(at, path, "must be %s, this is %s", kindString, at.kind)
		case to == nil:
			g.at(at, path, "there is no activity of this name")
		case to.Type == "": // already reported
		case to.Type != TypeHook:
			g.at(at, path, "a cycle goes back to a pass-through hook, this is %s", withArticle(string(to.Type)))
		case !to.def.passThrough():
			g.at(at, path, "a cycle goes back to a hook that neither sleeps nor waits for a signal; put one in front of %s", to.Name)
		case !v.reached || !to.reached:
		case !g.leads(to, v):
			g.at(at, path, "%s is not an ancestor of %s", to.Name, v.Name)
		case !to.Dominates(v.Activity):
			g.at(at, path, "there is a way to %s that does not lead through %s", v.Name, to.Name)
		default:
			v.To, to.Pivot = to.Activity, true
		}
	}
}

// meetings reports joins without an address: something between the join and its dominator
// makes passes, so the branches end in different passes, or some end in none (1.10).
func (g *graph) meetings() {
	var loops []*vertex
	last := make([]*vertex, len(g.sorted)) // the last loop in topological order that leads to each
	for i, v := range g.sorted {
		for _, e := range v.in {
			if e.dropped || !e.from.reached {
				continue
			}
			if from := e.from; from.Passes() && (last[i] == nil || last[i].order < from.order) {
				last[i] = from
			}
			if l := last[e.from.order]; l != nil && (last[i] == nil || last[i].order < l.order) {
				last[i] = l
			}
		}
		if v.Passes() {
			loops = append(loops, v)
		}
	}
	for i, v := range g.sorted {
		// What leads to a join, and comes behind its dominator, is dominated by it.
		if v.Join == "" || last[i] == nil || last[i].order <= v.dominator.order || g.full() {
			continue
		}
		for _, l := range loops {
			if l == v || l == v.dominator || !v.dominator.Dominates(l.Activity) || !g.leads(l, v) {
				continue
			}
			what := "the pivot of a cycle"
			if l.Repeat {
				what = "a hook that repeats"
			}
			g.add(v.def.at, join("activities", v.Name), v.Name,
				"the branches that meet here part at %s, and one leads through %s, %s: its passes are not those of the join; move the join into the loop, or the loop into a flow that an await starts",
				v.dominator.Name, l.Name, what)
			break
		}
	}
}
