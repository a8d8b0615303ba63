package schema

import (
	"slices"
	"strconv"
)

// MaxProblems bounds the problems that are listed.
const MaxProblems = 20

// Misfit says what of a document does not fit.
type Misfit struct {
	// Problems are one to MaxProblems.
	Problems []Problem
	// More is how many others were found.
	More int
}

// Problem is a value that does not fit.
type Problem struct {
	// Steps are the names and indexes that lead to the value.
	Steps []string
	// Message says what the schema wants.
	Message string
}

// problems are those of one rule at one value.
type problems struct{ list []problem }

// problem is a message, or a rule that does not fit, or alternatives none of which does.
type problem struct {
	message string
	rule    *rule
	choice  []*rule
	v       ref
	scope   *scope
	below   kind // object, list: v is a member, an item
	index   int
}

// place is a value on the way from the root.
type place struct {
	up    *place
	step  string
	depth int
}

func (p *place) level() int {
	if p == nil {
		return 0
	}
	return p.depth
}

func (p *place) steps() []string {
	steps := make([]string, 0, p.level())
	for ; p != nil; p = p.up {
		steps = append(steps, p.step)
	}
	slices.Reverse(steps)
	return steps
}

// explanation walks what does not fit, each rule at each value once.
type explanation struct {
	*evaluation
	misfit  *Misfit
	walked  map[outcome]bool // true: not left yet
	nearest map[outcome]int
	listed  map[listed]bool
	within  int
}

// listed is a problem that is in the list.
type listed struct {
	value   ref
	message string
}

// maxWithin bounds how many rules an explanation follows within each other.
const maxWithin = 2_000

// problemsOf are the problems of a rule at a value.
func (x *explanation) problemsOf(r *rule, v ref, s *scope) []problem {
	if r.constant != 0 {
		return []problem{{message: "false schema"}}
	}
	found := &problems{}
	s = x.enter(s, r)
	before := x.active[r.id]
	x.depth++
	x.active[r.id] = active{v, x.depth}
	x.check(r, v, s, nil, found)
	x.active[r.id] = before
	x.depth--
	return found.list
}

func (x *explanation) walk(r *rule, v ref, s *scope, at *place) {
	key := outcome{rule: r.id, value: v, scope: s.id}
	if under, walked := x.walked[key]; walked || x.err != nil {
		if under {
			x.list(v, at, "the schema refers to itself here, without an end")
		}
		return
	}
	x.walked[key] = true
	if x.within++; x.within > maxWithin {
		x.list(v, at, "does not fit the schema")
	}
	for _, p := range x.problemsOf(r, v, s) {
		switch {
		case x.within > maxWithin:
		case p.choice != nil:
			for _, r := range x.closest(p, at.level()) {
				x.walk(r, p.v, p.scope, at)
			}
		case p.rule != nil:
			x.walk(p.rule, p.v, p.scope, x.step(at, p))
		default:
			x.list(v, at, p.message)
		}
	}
	x.within--
	x.walked[key] = false
}

// step is the place of a problem.
func (x *explanation) step(at *place, p problem) *place {
	switch p.below {
	case object:
		return &place{up: at, step: x.key(p.v), depth: at.level() + 1}
	case list:
		return &place{up: at, step: strconv.Itoa(p.index), depth: at.level() + 1}
	}
	return at
}

func (x *explanation) list(v ref, at *place, message string) {
	problem := listed{v, cut(message, maxMessage)}
	switch {
	case x.listed[problem]:
	case len(x.listed) == MaxProblems:
		x.misfit.More++
	default:
		x.listed[problem] = true
		x.misfit.Problems = append(x.misfit.Problems, Problem{Steps: at.steps(), Message: problem.message})
	}
}

// closest are the alternatives that came nearest: their first problem is the deepest.
func (x *explanation) closest(p problem, depth int) (rules []*rule) {
	best := -1
	for _, r := range p.choice {
		d := x.reach(r, p.v, p.scope, depth)
		if d > best {
			best, rules = d, nil
		}
		if d == best {
			rules = append(rules, r)
		}
	}
	return rules
}

// reach is how deep the first problem of a rule at a value is.
func (x *explanation) reach(r *rule, v ref, s *scope, depth int) int {
	key := outcome{rule: r.id, value: v, scope: s.id}
	if known, ok := x.nearest[key]; ok || x.err != nil {
		return max(known, depth)
	}
	x.nearest[key] = depth // for a rule that comes to itself
	if x.within++; x.within > maxWithin {
		x.within--
		return depth
	}
	reach := never
	for _, p := range x.problemsOf(r, v, s) {
		d := depth
		switch {
		case p.choice != nil:
			for _, r := range p.choice {
				d = max(d, x.reach(r, p.v, p.scope, depth))
			}
		case p.rule != nil && p.below == null:
			d = x.reach(p.rule, p.v, p.scope, depth)
		case p.rule != nil:
			d = x.reach(p.rule, p.v, p.scope, depth+1)
		}
		if reach = min(reach, d); reach == depth {
			break // none can be nearer
		}
	}
	x.within--
	if reach == never {
		reach = depth
	}
	x.nearest[key] = reach
	return reach
}
