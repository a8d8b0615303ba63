package model

// heldAwait is an await whose child does not end by itself.
type heldAwait struct {
	x     *exec
	child *kid
	id    string
}

// await runs a child and takes its outcome. It reports false while the child is
// one that does not end by itself and that nothing has interrupted yet.
func (j *job) await(f *frame, a *act, after past) bool {
	if held := j.waiting[a]; held != nil {
		code, stopped := j.stopped[held.id]
		if !stopped {
			return false
		}
		held.child.stop(code, j.stops(held.id))
		j.entries[a.name]++
		held.x.result = failed(code)
		return j.awaited(f, held.x)
	}
	x := j.exec(a, after, result{})
	j.runs[a.name]++
	env := j.env(f, x, nil)
	name, err := template(a.text("flow"), env)
	id, err2 := template(a.text("id"), env)
	in, err3 := j.in(f, x, nil)
	if err != nil || err2 != nil || err3 != nil {
		x.result = j.broken(x)
		return j.awaited(f, x)
	}
	switch d := j.h.flows[name.(string)]; {
	case d == nil || a.text("version") == "none":
		return j.refused(f, x, 404)
	case d.refuses(in):
		return j.refused(f, x, 400)
	case id == j.id:
		return j.refused(f, x, 409)
	}
	return j.children(f, x, name.(string), id.(string), in)
}

func (j *job) awaited(f *frame, x *exec) bool {
	j.mapOutput(f, x, nil)
	f.got[x.act] = x
	j.decide(f, x)
	return true
}

func (j *job) refused(f *frame, x *exec, code int) bool {
	j.entries[x.act.name]++
	x.result = failed(code)
	return j.awaited(f, x)
}

// children runs one child after the other until one does not fail.
func (j *job) children(f *frame, x *exec, flow, id string, in any) bool {
	a := x.act
	key := id
	if key == "" {
		key = j.id + "/" + a.name + "-*"
	}
	for turn := 1; ; turn++ {
		child := &kid{act: a.name, turn: turn, outcome: j.h.run(flow, in, key, turn)}
		j.kids = append(j.kids, child)
		if !a.flag("await", true) {
			j.entries[a.name]++
			x.result = result{code: 200, output: map[string]any{"id": unknown{}}}
			return j.awaited(f, x)
		}
		if child.forever {
			if within := a.length("within"); within > 0 && within < long {
				child.maybe = true
				return j.refused(f, x, 408)
			}
			j.waiting[a] = &heldAwait{x, child, id}
			return false
		}
		last, sure := child.only()
		if !sure {
			j.h.vague = append(j.h.vague, "the end of "+flow)
		}
		j.entries[a.name]++
		if last.state == "failed" && turn < a.attempts() {
			continue
		}
		x.result = failed(last.code)
		if last.state == "completed" {
			x.result = result{code: 200, output: child.output}
		}
		return j.awaited(f, x)
	}
}

// stops says whether the interrupt of the job goes on to its children.
func (j *job) stops(id string) bool {
	for _, a := range j.d.acts {
		if a.typ == "interrupt" && a.flag("descend", false) {
			v, err := template(a.text("target"), func(string) any { return j.info() })
			if err == nil && v == id {
				return true
			}
		}
	}
	return false
}

// stop is the interrupt of a job, and of the children that it awaits if it
// descends.
func (o *outcome) stop(code int, descends bool) {
	o.ends, o.stopped = map[end]bool{{"interrupted", code}: true}, true
	for _, k := range o.kids {
		if descends && k.forever {
			k.stop(code, true)
		}
	}
}
