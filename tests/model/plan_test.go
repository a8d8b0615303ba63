package model

import (
	"fmt"
	"slices"
	"sync"

	"pgregory.net/rapid"
)

// plan is everything that one run does: flows, jobs, and the world's faults.
type plan struct {
	flows  []string // texts; the first is that of the jobs
	inputs []any    // of the jobs
	world  faults
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
	for i := range evenly(t, "kids", 2) {
		kids = append(kids, drawFlow(t, fmt.Sprintf("kid%d", i+1), mostOfKids, true, kids))
	}
	most := []int{6, 12, mostActs}[evenly(t, "most", 2)]
	flows := append([]*def{drawFlow(t, "main", most, false, kids)}, kids...)
	p := &plan{}
	for range 1 + evenly(t, "jobs", 2) {
		list := []any{}
		for range evenly(t, "elements", 6) {
			list = append(list, evenly(t, "element", 9))
		}
		p.inputs = append(p.inputs, map[string]any{"v": evenly(t, "v", 9), "list": list})
	}
	for n := 2; ; n-- { // fewer passes, until it is little enough
		p.flows = nil
		for _, d := range flows {
			d.tame(n)
			p.flows = append(p.flows, d.yaml())
		}
		p.flows = append(p.flows, standing...)
		if p.small() || n == 0 {
			break
		}
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

// host reads the flows.
func (p *plan) host() *host {
	h := &host{flows: map[string]*def{}, limit: limitExecs}
	for _, text := range p.flows[:len(p.flows)-len(standing)] {
		d := parse(text)
		h.flows[d.name] = d
	}
	for _, d := range stand() {
		h.flows[d.name] = d
	}
	return h
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

// expect says what becomes of each job; vague is what nobody can know.
func (p *plan) expect() (outcomes []*outcome, vague []string) {
	h := p.host()
	for i, in := range p.inputs {
		outcomes = append(outcomes, h.run(parse(p.flows[0]).name, in, key(i), 1))
	}
	return outcomes, h.vague
}

// small says that the plan keeps within the limits.
func (p *plan) small() (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, much := r.(tooMuch); !much {
				panic(r)
			}
			ok = false
		}
	}()
	outcomes, _ := p.expect()
	return !slices.ContainsFunc(outcomes, func(o *outcome) bool { return o.total() > limitTotal })
}

// text is the plan as a person can read it and a test can run it again.
func (p *plan) text() string {
	s := ""
	for _, f := range p.flows[:len(p.flows)-len(standing)] {
		s += f + "---\n"
	}
	return s + fmt.Sprintf("inputs: %s\nworld: %+v\n", flowStyle(p.inputs), p.world)
}
