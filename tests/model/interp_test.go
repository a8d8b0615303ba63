package model

import (
	"fmt"
	"slices"
)

// host holds the flows that can be started.
type host struct {
	flows map[string]*def
	limit int // of execs in one job; 0: none
	vague []string
}

// tooMuch is what run panics with past the limit.
type tooMuch struct{ flow string }

// job is one job on its way through its flow.
type job struct {
	*outcome
	h       *host
	d       *def
	turn    int
	execs   int
	passed  map[*act][]*exec
	stopped map[string]int      // jobs that were interrupted, with the code
	waiting map[*act]*heldAwait // awaits of what does not end by itself
	stuck   map[*act]bool       // hooks that nothing wakes
}

// frame is one pass through the part of the graph that belongs to a pass-maker,
// or the whole of what belongs to none.
type frame struct {
	up    *frame
	loop  *loop
	got   map[*act]*exec
	edges map[*edge]arrival
}

// arrival is a decided transition.
type arrival struct {
	taken bool
	after past
}

// loop is a pivot that waits for passes.
type loop struct {
	pivot  *act
	passes int
	queue  []*exec // cycles that have sent it on, with the next pass's output
}

// run says what becomes of a job.
func (h *host) run(flow string, input any, id string, turn int) *outcome {
	j := &job{
		outcome: &outcome{
			flow: flow, id: id, input: input, ends: map[end]bool{}, runs: map[string]int{}, entries: map[string]int{},
			asked: map[string][]string{}, waits: map[string]int{},
		},
		h: h, d: h.flows[flow], turn: turn, passed: map[*act][]*exec{},
		stopped: map[string]int{}, waiting: map[*act]*heldAwait{}, stuck: map[*act]bool{},
	}
	trigger := j.d.acts[0]
	f := &frame{got: map[*act]*exec{}, edges: map[*edge]arrival{}}
	whole := j.region(f, j.exec(trigger, nil, result{code: 200, output: input}))
	j.early = len(j.ends) > 0 || !whole
	if j.forever = !whole && len(j.ends) == 0; j.forever {
		return j.outcome
	}
	out, err := mapped(j.d.output, j.whole)
	completed := end{"completed", 200}
	if len(j.ends) == 0 {
		j.ends[completed] = true
	}
	if j.ends[completed] && err != nil { // an interrupt may complete the job, too
		delete(j.ends, completed)
		j.close("failed", 500)
	}
	j.output = out
	for _, asked := range j.asked {
		slices.Sort(asked)
	}
	return j.outcome
}

// exec notes that an activity was decided.
func (j *job) exec(a *act, after past, r result) *exec {
	if j.execs++; j.h.limit > 0 && j.execs > j.h.limit {
		panic(tooMuch{j.flow})
	}
	x := &exec{number: j.execs, act: a, result: r, after: after}
	if !r.skipped {
		j.passed[a] = append(j.passed[a], x)
	}
	return x
}

// close notes a way in which the job may end before its branches do.
func (j *job) close(state string, code int) { j.ends[end{state, code}] = true }

// whole is what the flow's output sees: the last pass of everything.
func (j *job) whole(name string) any {
	if name == "job" {
		return j.info()
	}
	a := j.d.byName[name]
	if len(j.passed[a]) == 0 {
		return (&result{skipped: true}).value()
	}
	x, sure := latest(j.passed[a])
	if !sure {
		return unknown{}
	}
	return x.value()
}

func (j *job) info() any { return map[string]any{"id": j.id, "flow": j.flow, "version": "1"} }

// env is what an expression of an exec sees in its frame, and besides.
func (j *job) env(f *frame, x *exec, more map[string]any) names {
	return func(name string) any {
		if v, ok := more[name]; ok {
			return v
		}
		if name == "job" {
			return j.info()
		}
		a := j.d.byName[name]
		if a == x.act {
			return x.value()
		}
		for g := f; g != nil; g = g.up {
			if y := g.got[a]; y != nil {
				if !x.after.has(y.number) {
					panic(fmt.Sprintf("model: %s mentions %s, which need not be decided by then", x.act.name, name))
				}
				return y.value()
			}
		}
		panic(fmt.Sprintf("model: %s mentions %s, which is not above it", x.act.name, name))
	}
}

// region goes through the activities of one frame, from the exec that opened it.
// It reports false where something in it never ends.
func (j *job) region(f *frame, root *exec) bool {
	f.got[root.act] = root
	j.decide(f, root)
	var home *act
	if f.loop != nil || root.act.passes {
		home = root.act
	}
	for {
		moved, left := false, false
		for _, a := range j.d.acts {
			if a.home != home || a == root.act || f.got[a] != nil {
				continue
			}
			if j.visit(f, a) {
				moved = true
			} else {
				left = true
			}
		}
		if !moved {
			return !left
		}
	}
}

// decide takes the transitions of an exec that has ended.
func (j *job) decide(f *frame, x *exec) {
	bad := x.code != 200 && !x.skipped
	taken, err := j.taken(f, x, bad)
	if err != nil {
		x.result = failed(500)
		bad = true
		if taken, err = j.taken(f, x, true); err != nil {
			taken = nil
		}
	}
	if bad && len(taken) == 0 {
		j.close("failed", x.code)
	}
	for _, e := range x.act.out {
		f.edges[e] = arrival{taken: taken[e], after: x.then()}
	}
}

func (j *job) taken(f *frame, x *exec, bad bool) (map[*edge]bool, error) {
	taken := map[*edge]bool{}
	for _, e := range x.act.out {
		if x.skipped || e.onError != bad {
			continue
		}
		if e.when == "" {
			taken[e] = true
			continue
		}
		v, err := evaluate(e.when, j.env(f, x, nil))
		if err != nil {
			return nil, err
		}
		is, ok := v.(bool)
		if !ok {
			return nil, &exprError{"no condition"}
		}
		if is {
			taken[e] = true
		}
	}
	return taken, nil
}

// visit runs or skips an activity whose arrivals are all decided. It reports
// false where they are not, or where what runs does not end yet.
func (j *job) visit(f *frame, a *act) bool {
	var all, some past
	run := false
	for _, e := range a.in {
		arr, ok := f.edges[e]
		if !ok {
			return false
		}
		all = all.or(arr.after)
		if arr.taken && run {
			some = some.and(arr.after)
		} else if arr.taken {
			some, run = arr.after, true
		}
	}
	if !run {
		x := j.exec(a, all, result{skipped: true})
		f.got[a] = x
		j.decide(f, x)
		return true
	}
	if len(a.in) > 1 && a.text("join") == "any" {
		all = some // any of them may have been the first
	}
	switch a.typ {
	case "worker":
		return j.settle(f, j.exec(a, all, result{}), j.worker, nil)
	case "await":
		return j.await(f, a, all)
	case "hook":
		return j.hook(f, a, all)
	case "signal":
		return j.settle(f, j.exec(a, all, result{}), j.signal, nil)
	case "cycle":
		return j.cycle(f, j.exec(a, all, result{}))
	case "interrupt":
		return j.interrupt(f, j.exec(a, all, result{}))
	}
	panic("model: unknown type " + a.typ)
}

// settle ends an exec with the result that fn gives and its output clause maps.
func (j *job) settle(f *frame, x *exec, fn func(*frame, *exec) result, signal any) bool {
	j.runs[x.act.name]++
	x.result = fn(f, x)
	j.mapOutput(f, x, signal)
	f.got[x.act] = x
	j.decide(f, x)
	return true
}

// mapOutput applies the activity's output clause to a success.
func (j *job) mapOutput(f *frame, x *exec, signal any) {
	clause, has := x.act.props["output"]
	if !has || x.code != 200 {
		return
	}
	out, err := mapped(clause, j.env(f, x, map[string]any{"signal": signal}))
	if err != nil {
		by := x.by
		x.result = failed(500)
		x.by = by
		return
	}
	x.output = out
}

// broken is the result of an activity whose input failed.
func (j *job) broken(x *exec) result {
	j.entries[x.act.name]++
	return failed(500)
}
