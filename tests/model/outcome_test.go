package model

import (
	"slices"

	"github.com/google/go-cmp/cmp"
)

// end is how a job ends.
type end struct {
	state string // completed, failed, interrupted
	code  int
}

// outcome is what the interpreter says of one job.
type outcome struct {
	flow   string
	id     string // its key; what is derived in it stands as *
	input  any
	ends   map[end]bool // the ends that it may come to; several where branches race for it
	output any          // of a completed job
	// forever says that nothing in the flow ends the job.
	forever bool
	// early says that the end cuts branches off: what ran is then only a part of
	// what is said here. loose says that not even that is known.
	early, loose bool
	// stopped says that an interrupt of the flow's own ends it: then it is early,
	// but its end is sure.
	stopped bool
	// descends says that the end may be an interrupt of the children, too.
	descends bool

	runs    map[string]int      // how often an activity was started
	entries map[string]int      // Leg2 messages that it accepted
	asked   map[string][]string // inputs of its requests that a handler sees
	waits   map[string]int      // waits by the key of their signal
	kids    []*kid
}

// kid is a child that an await started.
type kid struct {
	act   string
	turn  int
	maybe bool // it may have been given up before it began
	*outcome
}

// only is the one end of a job that has only one.
func (o *outcome) only() (end, bool) {
	for e := range o.ends {
		return e, len(o.ends) == 1
	}
	return end{}, false
}

// total counts what is started in the job and below.
func (o *outcome) total() int {
	n := 0
	for _, k := range o.runs {
		n += k
	}
	for _, asked := range o.asked {
		n += len(asked)
	}
	for _, k := range o.kids {
		n += k.total()
	}
	return n
}

// result is what an activity has come to at one address.
type result struct {
	skipped bool
	code    int
	output  any
	err     any
	by      any
}

func failed(code int) result {
	return result{code: code, err: map[string]any{"code": code}}
}

// value is the result as expressions see it.
func (r *result) value() any {
	return map[string]any{
		"output": r.output, "code": r.code, "error": r.err, "by": r.by, "skipped": r.skipped,
	}
}

// exec is an activity at one address, run or skipped, or one pass of it.
type exec struct {
	number int
	act    *act
	result
	after past // what has certainly been decided before it started
}

// then is what has been decided once the exec is.
func (x *exec) then() past { return x.after.with(x.number) }

// past is a set of execs by number.
type past []uint64

func (p past) has(n int) bool { return n/64 < len(p) && p[n/64]>>(n%64)&1 == 1 }

func (p past) with(n int) past {
	out := slices.Clone(p)
	for n/64 >= len(out) {
		out = append(out, 0)
	}
	out[n/64] |= 1 << (n % 64)
	return out
}

func (p past) or(q past) past {
	if len(p) < len(q) {
		p, q = q, p
	}
	out := slices.Clone(p)
	for i := range q {
		out[i] |= q[i]
	}
	return out
}

func (p past) and(q past) past {
	out := slices.Clone(p[:min(len(p), len(q))])
	for i := range out {
		out[i] &= q[i]
	}
	return out
}

// latest is the last of the execs of one activity, if they have one.
func latest(xs []*exec) (*exec, bool) {
	same := true
	for _, x := range xs {
		last := true
		for _, y := range xs {
			last = last && (x == y || x.after.has(y.number))
			same = same && spell(x.value()) == spell(y.value())
		}
		if last {
			return x, true
		}
	}
	return xs[0], same
}

// matches compares what was given with what was expected, which may be unknown
// in parts.
func matches(want, got any) bool {
	unsure := func(a, b any) bool { return a == any(unknown{}) || b == any(unknown{}) }
	return cmp.Equal([]any{want}, []any{got}, cmp.FilterValues(unsure, cmp.Comparer(func(any, any) bool {
		return true
	})))
}
