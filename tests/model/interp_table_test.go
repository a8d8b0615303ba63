package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// interpret reads one flow, or several apart by lines of dashes, of which the
// first is run; by hand-made tables, so that the model itself is held to the
// rules and not to the code that it judges.
func interpret(flows ...string) *outcome {
	h := &host{flows: map[string]*def{}, limit: 1000}
	for _, text := range flows {
		d := parse(text)
		h.flows[d.name] = d
	}
	return h.run(parse(flows[0]).name, map[string]any{"v": 3, "list": []any{5, 6, 7}}, "job-1", 1)
}

const head = "flow: f\nversion: '1'\n"

func TestModelOfWorkers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flow    string
		ends    map[end]bool
		output  any
		runs    map[string]int
		entries map[string]int
	}{
		"a chain": {
			flow: head + `
output: {a: "${ a.output.v }", b: "${ b.code }"}
activities: {s: {type: trigger}, a: {type: worker, topic: work, input: {act: x, v: "${ s.output.v }"}}, b: {type: worker, topic: work}}
transitions: {s: [a], a: [b]}`,
			ends:   map[end]bool{{"completed", 200}: true},
			output: map[string]any{"a": mix("x", 3), "b": 200},
			runs:   map[string]int{"a": 1, "b": 1}, entries: map[string]int{"a": 1, "b": 1},
		},
		"an error that nobody takes, after two failed attempts": {
			flow: head + `
activities: {s: {type: trigger}, a: {type: worker, topic: work, input: {fail: 2, code: 422}}, b: {type: worker, topic: work}}
transitions: {s: [a], a: [b]}`,
			ends: map[end]bool{{"failed", 422}: true},
			runs: map[string]int{"a": 1}, entries: map[string]int{"a": 3},
		},
		"an error that is taken; tries that run out": {
			flow: head + `
output: "${ a.code }"
activities: {s: {type: trigger}, a: {type: worker, topic: work, input: {fail: 9, how: busy}, retry: {attempts: 2}}, b: {type: worker, topic: work}, c: {type: worker, topic: work}}
transitions: {s: [a], a: [b, {to: c, on: error, when: "a.code == 503 && a.error.code > 500"}]}`,
			ends:   map[end]bool{{"completed", 200}: true},
			output: 503,
			runs:   map[string]int{"a": 1, "c": 1}, entries: map[string]int{"a": 2, "c": 1},
		},
		"expressions that fail: in an input, in a condition, in the output": {
			flow: head + `
output: "${ a.output.none }"
activities: {s: {type: trigger}, a: {type: worker, topic: work, input: {v: "${ s.output.none }"}}, b: {type: worker, topic: work}, c: {type: worker, topic: work}, d: {type: worker, topic: work}}
transitions: {s: [a], a: [{to: b, on: error}], b: [{to: c, when: "b.output.none == 1"}, {to: d, on: error, when: "b.code == 500"}]}`,
			ends: map[end]bool{{"failed", 500}: true},
			runs: map[string]int{"a": 1, "b": 1, "d": 1}, entries: map[string]int{"a": 1, "b": 1, "d": 1},
		},
		"lists: the lowest error, collected errors, the empty one": {
			flow: head + `
output: {b: "${ b.code }", c: "${ c.output[1].code }", d: "${ size(d.output) }"}
activities:
  s: {type: trigger}
  b: {type: worker, topic: work, each: s.output.list, input: {v: "${ item }", n: "${ index }", bad: [1, 2], fail: 1}}
  c: {type: worker, topic: work, each: s.output.list, each_errors: collect, input: {n: "${ index }", bad: [1]}}
  d: {type: worker, topic: work, each: "[]"}
transitions: {s: [b], b: [{to: c, on: error}], c: [d]}`,
			ends:   map[end]bool{{"completed", 200}: true},
			output: map[string]any{"b": 422, "c": 422, "d": 0},
			runs:   map[string]int{"b": 1, "c": 1, "d": 1}, entries: map[string]int{"b": 6, "c": 3, "d": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := interpret(c.flow)
			require.Equal(t, c.ends, o.ends)
			require.Equal(t, c.output, o.output)
			require.Equal(t, c.runs, o.runs)
			require.Equal(t, c.entries, o.entries)
		})
	}
}

func TestModelOfJoins(t *testing.T) {
	t.Parallel()
	o := interpret(head + `
output: {j: "${ j.output }", k: "${ k.skipped }", b: "${ b.skipped }"}
activities:
  s: {type: trigger}
  a: {type: hook, input: {v: 1}}
  b: {type: hook}
  c: {type: hook}
  j: {type: hook, input: {b: "${ b.skipped }", a: "${ a.output.v }"}}
  k: {type: hook}
  m: {type: hook, join: any, input: {s: "${ s.output.v }"}}
transitions:
  s: [a, {to: b, when: "s.output.v == 0"}, {to: c, when: "s.output.v > 5"}]
  a: [j]
  b: [j, k]
  c: [k]
  j: [m]
  k: [m]`)
	require.Equal(t, map[end]bool{{"completed", 200}: true}, o.ends)
	require.Equal(t, map[string]any{"j": map[string]any{"b": true, "a": 1}, "k": true, "b": true}, o.output)
	require.Equal(t, map[string]int{"a": 1, "j": 1, "m": 1}, o.runs, "k has only skipped arrivals; m one of each kind")
}

// What runs beside the way to an any-join need not be decided when it runs.
func TestModelKnowsWhatIsDecided(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() {
		interpret(head + `
activities: {s: {type: trigger}, a: {type: hook}, b: {type: hook}, j: {type: hook, join: any, input: {a: "${ a.code }"}}}
transitions: {s: [a, b], a: [j], b: [j]}`)
	})
}

func TestModelOfLoops(t *testing.T) {
	t.Parallel()
	nested := head + `
output: {w: "${ w.output }", side: "${ side.output }", q: "${ q.output.n }"}
activities:
  s: {type: trigger}
  p: {type: hook, input: {n: 2}}
  q: {type: hook, input: {n: 1}}
  w: {type: worker, topic: work, input: {act: w, v: "${ p.output.n }", n: "${ q.output.n }"}}
  side: {type: worker, topic: work, input: {act: side, v: "${ q.output.n }"}}
  back: {type: cycle, to: q, input: {n: "${ q.output.n - 1 }"}}
  again: {type: cycle, to: p, input: {n: "${ p.output.n - 1 }"}}
transitions:
  s: [p]
  p: [q]
  q: [w, side]
  w: [{to: back, when: "q.output.n > 0"}, {to: again, when: "q.output.n == 0 && p.output.n > 0"}]`
	o := interpret(nested)
	require.Equal(t, map[string]int{"p": 1, "q": 3, "w": 6, "side": 6, "back": 3, "again": 2}, o.runs)
	require.Equal(t, map[string]int{"p": 3, "q": 6, "w": 6, "side": 6}, o.entries)
	require.Equal(t, map[string]any{
		"w": map[string]any{"v": mix("w", 0)}, "side": unknown{}, "q": 0,
	}, o.output, "side of one pass may end after that of the next")
	require.Equal(t, []string{
		`{"act":"w","n":0,"v":0}`, `{"act":"w","n":0,"v":1}`, `{"act":"w","n":0,"v":2}`,
		`{"act":"w","n":1,"v":0}`, `{"act":"w","n":1,"v":1}`, `{"act":"w","n":1,"v":2}`,
	}, o.asked["w"])

	o = interpret(head + `
activities: {s: {type: trigger}, p: {type: hook}, w: {type: worker, topic: work}, again: {type: cycle, to: p, max: 2}}
transitions: {s: [p], p: [w], w: [again]}`)
	require.Equal(t, map[end]bool{{"failed", 500}: true}, o.ends)
	require.Equal(t, 3, o.runs["w"])
}

func TestModelOfHooks(t *testing.T) {
	t.Parallel()
	o := interpret(head + `
output: {a: "${ a.by }", b: "${ b.by }", c: "${ c.output }", d: "${ d.code }", e: "${ e.code }", r: "${ r.output }"}
activities:
  s: {type: trigger}
  a: {type: hook, sleep: 2s, signal: x, key: "${ job.id }/never/a"}
  b: {type: hook, sleep: 10h, signal: x, key: "${ job.id }/ok/b"}
  c: {type: hook, signal: x, key: "${ job.id }/ok/c", output: {v: "${ c.output.v }", w: "${ signal.payload.v }", code: "${ signal.code }"}}
  d: {type: hook, signal: x, key: "${ job.id }/bad/d"}
  e: {type: hook, signal: x, key: "${ job.id }/never/e", within: 1s}
  r: {type: hook, signal: x, key: "${ job.id }/two/r", repeat: true}
  w: {type: worker, topic: work, input: {v: "${ r.output.v }"}}
transitions: {s: [a], a: [b], b: [c], c: [d], d: [{to: e, on: error}], e: [{to: r, on: error}], r: [w]}`)
	require.Equal(t, map[end]bool{{"completed", 200}: true}, o.ends)
	require.Equal(t, map[string]any{
		"a": "timer", "b": "signal", "c": map[string]any{"v": mix("c", 0), "w": mix("c", 0), "code": 200},
		"d": 409, "e": 408, "r": unknown{},
	}, o.output, "the passes of r run side by side")
	require.Equal(t, 3, o.entries["r"])
	require.Equal(t, 1, o.runs["r"])
	require.Equal(t, 3, o.runs["w"])
	require.Equal(t, map[string]int{"job-1/never/a": 1, "job-1/ok/b": 1, "job-1/ok/c": 1, "job-1/bad/d": 1, "job-1/never/e": 1, "job-1/two/r": 1}, o.waits)
}

func TestModelOfChildren(t *testing.T) {
	t.Parallel()
	const child = `flow: kid
version: '1'
output: "${ w.output.v }"
activities: {s: {type: trigger}, w: {type: worker, topic: work, input: {act: k, v: "${ s.output.v }", who: "x", fails: "${ s.output.fails }"}}}
transitions: {s: [w]}`
	o := interpret(head+`
output: {a: "${ a.output }", b: "${ b.code }", c: "${ c.code }", d: "${ d.output }", e: "${ e.code }"}
activities:
  s: {type: trigger}
  a: {type: await, flow: kid, input: {v: 4, fails: 2}, retry: {attempts: 3}}
  b: {type: await, flow: kid, input: {v: 4, fails: 2}, retry: {attempts: 2}}
  c: {type: await, flow: none}
  d: {type: await, flow: kid, input: {v: 4, fails: 9}, await: false}
  e: {type: await, flow: kid, id: "${ job.id }"}
  z: {type: hook}
transitions: {s: [a], a: [b], b: [{to: c, on: error}], c: [{to: d, on: error}], d: [e], e: [{to: z, on: error}]}`, child)
	require.Equal(t, map[end]bool{{"completed", 200}: true}, o.ends)
	require.Equal(t, map[string]any{
		"a": mix("k", 4), "b": 409, "c": 404, "d": map[string]any{"id": unknown{}}, "e": 409,
	}, o.output)
	require.Equal(t, map[string]int{"a": 3, "b": 2, "c": 1, "d": 1, "e": 1}, o.entries)
	require.Len(t, o.kids, 6)
	last, sure := o.kids[5].only()
	require.True(t, sure)
	require.Equal(t, end{"failed", 409}, last)
}

func TestModelOfInterrupts(t *testing.T) {
	t.Parallel()
	o := interpret(head + `
activities:
  s: {type: trigger}
  a: {type: interrupt, code: 444}
  b: {type: interrupt, throw: false}
  c: {type: interrupt, target: "nobody-${ job.id }"}
  d: {type: hook}
transitions: {s: [a, b, c], c: [{to: d, on: error, when: "c.code == 404"}]}`)
	require.Equal(t, map[end]bool{{"interrupted", 444}: true, {"completed", 200}: true}, o.ends)
	require.True(t, o.early)

	const kid = `flow: kid
version: '1'
activities:
  s: {type: trigger}
  tell: {type: signal, topic: up, key: "${ s.output.up }", payload: {v: 1}}
  nap: {type: hook, sleep: 10h}
transitions: {s: [tell], tell: [nap]}`
	o = interpret(head+`
output: "${ k.code }"
activities:
  s: {type: trigger}
  k: {type: await, flow: kid, id: "${ job.id }/kid", input: {up: "${ job.id }/only/w"}}
  w: {type: hook, signal: up, key: "${ job.id }/only/w"}
  i: {type: interrupt, target: "${ job.id }/kid", code: 499}
  z: {type: hook}
transitions: {s: [k, w], w: [i], k: [{to: z, on: error}]}`, kid)
	require.Equal(t, map[end]bool{{"completed", 200}: true}, o.ends)
	require.Equal(t, 499, o.output)
	require.Equal(t, map[string]int{"tell": 1, "nap": 1}, o.kids[0].runs)
	last, sure := o.kids[0].only()
	require.True(t, sure)
	require.Equal(t, end{"interrupted", 499}, last)
}
