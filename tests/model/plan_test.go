package model

import (
	"fmt"
	"slices"
	"sync"

	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/internal/testkit/soak"
)

// plan is everything that one run does: flows, jobs, and the world's faults.
type plan struct {
	flows  []string // texts; the first is that of the jobs
	inputs []any    // of the jobs
	world  faults

	defs     []*def     // of the flows
	outcomes []*outcome // of the jobs
	vague    []string   // what nobody can know of them
	much     bool       // they are more than a test should run
}

// limits keep a run short: what is started in one job, children included.
const (
	limitExecs = 300
	limitTotal = 400
	mostActs   = 25
	mostOfKids = 6
)

// drawPlan draws a run whose flows end within the limits.
func drawPlan(t *rapid.T, modes []string) *plan {
	var kids []*def
	for i := range soak.Evenly(t, "kids", 2) {
		kids = append(kids, drawFlow(t, fmt.Sprintf("kid%d", i+1), mostOfKids, true, kids))
	}
	most := []int{6, 12, mostActs}[soak.Evenly(t, "most", 2)]
	flows := append([]*def{drawFlow(t, "main", most, false, kids)}, kids...)
	p := &plan{}
	for range 1 + soak.Evenly(t, "jobs", 2) {
		list := []any{}
		for range soak.Evenly(t, "elements", 6) {
			list = append(list, soak.Evenly(t, "element", 9))
		}
		p.inputs = append(p.inputs, map[string]any{"v": soak.Evenly(t, "v", 9), "list": list})
	}
	for n := 2; n == 2 || p.much && n >= 0; n-- { // fewer passes, until it is little enough
		p.flows = nil
		for _, d := range flows {
			d.tame(n)
			p.flows = append(p.flows, d.yaml())
		}
		p.flows = append(p.flows, standing...)
		p.expect()
	}
	p.world = drawFaults(t, modes)
	return p
}

// tame bounds the passes of the flow's loops.
func (d *def) tame(n int) {
	for _, a := range d.acts {
		if in, ok := a.props["input"].(map[string]any); ok && a.through() {
			if k, ok := in["n"].(int); ok {
				in["n"] = min(k, n)
			}
		}
	}
}

// stand reads the standing flows, once.
var stand = sync.OnceValue(func() []*def {
	out := make([]*def, len(standing))
	for i, text := range standing {
		out[i] = parse(text)
	}
	return out
})

// key is the key of a job of the plan.
func key(i int) string { return fmt.Sprintf("job-%d", i+1) }

// expect reads the flows and says what becomes of each job.
func (p *plan) expect() {
	h := &host{flows: map[string]*def{}, limit: limitExecs}
	p.defs = nil
	for _, text := range p.flows[:len(p.flows)-len(standing)] {
		p.defs = append(p.defs, parse(text))
	}
	p.defs = append(p.defs, stand()...)
	for _, d := range p.defs {
		h.flows[d.name] = d
	}
	p.outcomes, p.much = nil, false
	defer func() {
		if r := recover(); r != nil {
			if _, much := r.(tooMuch); !much {
				panic(r)
			}
			p.much = true
		}
	}()
	for i, in := range p.inputs {
		o := h.run(p.defs[0].name, in, key(i), 1)
		p.outcomes = append(p.outcomes, o)
		p.much = p.much || o.total() > limitTotal
	}
	p.vague = h.vague
}

// def is the flow of the name.
func (p *plan) def(name string) *def {
	return p.defs[slices.IndexFunc(p.defs, func(d *def) bool { return d.name == name })]
}

// text is the plan as a person can read it and a test can run it again.
func (p *plan) text() string {
	s := ""
	for _, f := range p.flows[:len(p.flows)-len(standing)] {
		s += f + "---\n"
	}
	return s + fmt.Sprintf("inputs: %s\nworld: %+v\n", spell(p.inputs), p.world)
}
