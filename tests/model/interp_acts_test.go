package model

import (
	"strings"
	"time"
)

// input evaluates the mapped input.
func (j *job) in(f *frame, x *exec, more map[string]any) (any, error) {
	v, has := x.act.props["input"]
	if item, each := more["item"]; each && !has {
		return item, nil
	}
	if !has {
		return map[string]any{}, nil
	}
	return mapped(v, j.env(f, x, more))
}

// worker asks its handler, once or for every element of a list.
func (j *job) worker(f *frame, x *exec) result {
	if _, each := x.act.props["each"]; each {
		return j.each(f, x)
	}
	in, err := j.in(f, x, nil)
	if err != nil {
		return j.broken(x)
	}
	code, out := j.ask(x, in)
	if code != 200 {
		return failed(code)
	}
	return result{code: 200, output: out}
}

// ask is one request with all its attempts.
func (j *job) ask(x *exec, in any) (int, any) {
	name := x.act.name
	if x.act.text("topic") == topicNobody {
		j.entries[name]++
		return 408, nil
	}
	j.asked[name] = append(j.asked[name], spell(in))
	d := taskOf(in)
	if attempts := x.act.attempts(); d.fail >= attempts {
		j.entries[name] += attempts
		return failedCodes[d.how], nil
	}
	j.entries[name] += d.fail + 1
	return d.final(j.turn)
}

func (j *job) each(f *frame, x *exec) result {
	v, err := evaluate(x.act.text("each"), j.env(f, x, nil))
	list, ok := v.([]any)
	if err != nil || !ok {
		return j.broken(x)
	}
	inputs := make([]any, len(list))
	for i, item := range list {
		if inputs[i], err = j.in(f, x, map[string]any{"item": item, "index": i}); err != nil {
			return j.broken(x)
		}
	}
	if len(list) == 0 {
		j.entries[x.act.name]++
	}
	outs := make([]any, len(list))
	worst := 0
	for i, in := range inputs {
		code, out := j.ask(x, in)
		switch {
		case x.act.text("each_errors") == "collect" && code == 200:
			outs[i] = map[string]any{"code": code, "output": out}
		case x.act.text("each_errors") == "collect":
			outs[i] = map[string]any{"code": code, "error": unknown{}}
		case code != 200 && worst == 0:
			worst = code
		default:
			outs[i] = out
		}
	}
	if worst != 0 {
		return failed(worst)
	}
	return result{code: 200, output: outs}
}

// long is what no test waits for.
const long = time.Hour

// hook passes through, sleeps, or waits for signals.
func (j *job) hook(f *frame, a *act, after past) bool {
	x := j.exec(a, after, result{})
	switch {
	case a.through() && a.passes:
		return j.pivot(f, x)
	case a.through():
		return j.settle(f, x, j.passThrough, nil)
	}
	if j.stuck[a] {
		return false
	}
	key := ""
	if a.text("signal") != "" {
		v, err := template(a.text("key"), j.env(f, x, nil))
		if err != nil {
			return j.settle(f, x, func(*frame, *exec) result { return j.broken(x) }, nil)
		}
		key = v.(string)
		j.waits[key]++
	}
	woken, pass, err := j.wake(f, x, key)
	if err != nil {
		return j.settle(f, x, func(*frame, *exec) result { return j.broken(x) }, nil)
	}
	if woken == nil {
		j.runs[a.name]++
		j.stuck[a] = true
		return false
	}
	for n := 1; n <= pass; n++ { // passes of a repeating hook, in any order
		p := payloadOf(key, n)
		j.pass(f, j.exec(a, after, result{code: 200, output: p, by: "signal"}), p)
	}
	if a.passes {
		j.runs[a.name]++
		x.result = *woken
		return j.pass(f, x, woken.output)
	}
	return j.settle(f, x, func(*frame, *exec) result {
		j.entries[a.name]++
		return *woken
	}, signalOf(woken, woken.output))
}

// wake is what ends a hook's wait, and how many passes go before; nil: nothing.
func (j *job) wake(f *frame, x *exec, key string) (*result, int, error) {
	a, r := x.act, rule{}
	if key != "" {
		r, _ = ruleOf(key)
	}
	text, err := template(a.text("sleep"), j.env(f, x, nil))
	if err != nil {
		return nil, 0, err
	}
	sleep, within := lengthOf(text.(string)), a.length("within")
	switch {
	case r.race:
		return &result{code: 200, output: unknown{}, by: unknown{}}, 0, nil
	case r.code == 200:
		return &result{code: 200, output: payloadOf(key, 0), by: "signal"}, r.passes, nil
	case r.code != 0:
		e := failed(r.code)
		e.by = "signal"
		return &e, r.passes, nil
	case within > 0 && within < long && (sleep == 0 || within < sleep):
		e := failed(408)
		return &e, 0, nil
	case a.text("sleep") != "" && sleep < long:
		return &result{code: 200, by: "timer"}, 0, nil
	}
	return nil, 0, nil
}

// signalOf is what an output clause sees of the signal that woke its hook.
func signalOf(r *result, payload any) any {
	if r.by != "signal" {
		return nil
	}
	return map[string]any{"id": unknown{}, "code": r.code, "payload": payload}
}

// pass is one pass of a repeating hook, with everything below.
func (j *job) pass(f *frame, x *exec, payload any) bool {
	j.entries[x.act.name]++
	j.mapOutput(f, x, signalOf(&x.result, payload))
	f.got[x.act] = x
	return j.region(&frame{up: f, loop: &loop{}, got: map[*act]*exec{}, edges: map[*edge]arrival{}}, x)
}

func (j *job) passThrough(f *frame, x *exec) result {
	in, err := j.in(f, x, nil)
	if err != nil {
		return j.broken(x)
	}
	return result{code: 200, output: in}
}

// pivot runs the first pass, and those that cycles ask for.
func (j *job) pivot(f *frame, x *exec) bool {
	j.runs[x.act.name]++
	j.entries[x.act.name]++ // the pre-seed
	x.result = j.passThrough(f, x)
	f.got[x.act] = x
	l := &loop{pivot: x.act}
	whole := true
	for next := x; ; {
		pass := &frame{up: f, loop: l, got: map[*act]*exec{}, edges: map[*edge]arrival{}}
		j.mapOutput(f, next, nil)
		whole = j.region(pass, next) && whole
		if len(l.queue) == 0 {
			return whole
		}
		next, l.queue = l.queue[0], l.queue[1:]
	}
}

// cycle sends its pivot into the next pass.
func (j *job) cycle(f *frame, x *exec) bool {
	j.runs[x.act.name]++
	f.got[x.act] = x
	in, err := j.in(f, x, nil)
	if err != nil {
		j.entries[x.act.name]++
		j.close("failed", 500)
		return true
	}
	x.result = result{code: 200}
	for g := f; g != nil; g = g.up {
		if g.loop == nil || g.loop.pivot != j.d.byName[x.act.text("to")] {
			continue
		}
		l := g.loop
		if l.passes++; l.passes > x.act.count("max", 10_000) {
			j.close("failed", 500)
			j.loose = true
			return true
		}
		j.entries[l.pivot.name]++
		l.queue = append(l.queue, j.exec(l.pivot, x.then(), result{code: 200, output: in}))
		return true
	}
	panic("model: the cycle " + x.act.name + " is not below its pivot")
}

// signal sends one to those who wait, as the key's rule foresees.
func (j *job) signal(f *frame, x *exec) result {
	env := j.env(f, x, nil)
	if _, err := template(x.act.text("key"), env); err != nil {
		return j.broken(x)
	}
	if _, err := mapped(x.act.props["payload"], env); err != nil {
		return j.broken(x)
	}
	return result{code: 200, output: map[string]any{"id": unknown{}}}
}

// interrupt ends a job, its own or another.
func (j *job) interrupt(f *frame, x *exec) bool {
	target, err := template(x.act.text("target"), j.env(f, x, nil))
	code, err2 := j.code(f, x)
	if err != nil || err2 != nil {
		if x.act.ends() {
			j.runs[x.act.name]++
			f.got[x.act] = x
			x.result = j.broken(x)
			j.close("failed", 500)
			return true
		}
		return j.settle(f, x, func(*frame, *exec) result { return j.broken(x) }, nil)
	}
	if x.act.text("target") == "" || target == j.id {
		j.runs[x.act.name]++
		f.got[x.act] = x
		x.result = result{code: 200}
		j.outcome.descends = j.outcome.descends || x.act.flag("descend", false)
		if x.act.flag("throw", true) {
			j.close("interrupted", code)
		} else {
			j.close("completed", 200)
		}
		for _, e := range x.act.out {
			f.edges[e] = arrival{after: x.then()}
		}
		return true
	}
	return j.settle(f, x, func(*frame, *exec) result {
		if strings.HasPrefix(target.(string), "nobody") {
			return failed(404)
		}
		j.stopped[target.(string)] = code
		return result{code: 200, output: map[string]any{"id": unknown{}}}
	}, nil)
}

// code is that of an interrupt: 400 to 599, otherwise it is an error.
func (j *job) code(f *frame, x *exec) (int, error) {
	clause, has := x.act.props["code"]
	if !has {
		return 410, nil
	}
	v, err := mapped(clause, j.env(f, x, nil))
	if err != nil {
		return 0, err
	}
	if n, ok := v.(int); ok && 400 <= n && n <= 599 {
		return n, nil
	}
	return 0, &exprError{"no code of an interrupt"}
}
