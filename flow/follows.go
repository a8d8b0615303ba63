package flow

// Follows reports whether transitions lead from activity a to activity x, or they are the
// same. A cycle leads to its pivot.
func (f *Flow) Follows(x, a string) bool {
	from, ok := f.Activity(a)
	if !ok {
		return false
	}
	seen := map[*Activity]bool{from: true}
	for next := []*Activity{from}; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		if at.Name == x {
			return true
		}
		for _, to := range at.leads() {
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	return false
}

// leads are the direct successors of the activity.
func (a *Activity) leads() []*Activity {
	to := make([]*Activity, 0, len(a.Out)+1)
	for _, t := range a.Out {
		to = append(to, t.To)
	}
	if a.To != nil {
		to = append(to, a.To)
	}
	return to
}
