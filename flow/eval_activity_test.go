package flow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// with is a flow with one activity x after the trigger and a hook h, which is a pivot.
func with(t *testing.T, activity string) *flow.Activity {
	t.Helper()
	f, err := flow.Parse("f.yaml", []byte(head+"activities:\n  start: {type: trigger}\n  h: {type: hook}\n  x: {"+activity+"}\ntransitions: {start: [h], h: [x]}\n"))
	require.NoError(t, err)
	return mustActivity(t, f, "x")
}

// input is a scope whose trigger has an output.
func input(output string) results { return results{"start": ran(output), "h": ran("null")} }

func TestEach(t *testing.T) {
	t.Parallel()
	x := with(t, `type: worker, topic: a, each: start.output.list, input: {i: "${ index }", v: "${ item.v }", n: "${ index + item.v + start.output.base }"}`)
	scope := input(`{"base":0.5,"list":[{"v":1},{"v":[]},{"v":2}]}`)
	elements, err := x.Each(scope)
	require.NoError(t, err)
	require.Equal(t, []string{`{"v":1}`, `{"v":[]}`, `{"v":2}`}, texts(elements))
	got, err := x.ElementInput(scope, elements[2], 2)
	require.NoError(t, err)
	require.Equal(t, `{"i":2,"n":4.5,"v":2}`, string(got))
	_, err = x.ElementInput(scope, elements[1], 1)
	require.EqualError(t, err, "input of x: ${ index + item.v + start.output.base }: + cannot be applied to a number and a list (column 7 of the expression)")
	_, err = x.Input(scope)
	require.ErrorContains(t, err, "index is known for an element only")

	plain := with(t, `type: worker, topic: a, each: "start.output.map(n, n * 2)"`)
	elements, err = plain.Each(input(`[1,2.5]`))
	require.NoError(t, err)
	require.Equal(t, []string{`2`, `5`}, texts(elements))
	got, err = plain.ElementInput(input(`[]`), elements[1], 1)
	require.NoError(t, err)
	require.Equal(t, `5`, string(got), "without an input, an element is the request")

	elements, err = plain.Each(input(`[]`))
	require.NoError(t, err)
	require.Empty(t, elements)
	most := "[" + strings.Repeat("1,", flow.MaxElements-1) + "1]"
	elements, err = plain.Each(input(most))
	require.NoError(t, err)
	require.Len(t, elements, flow.MaxElements)
	_, err = plain.Each(input("[1," + most[1:]))
	require.EqualError(t, err, "each of x: ${ start.output.map(n, n * 2) }: the list has 10001 elements, at most 10000 are allowed")
	_, err = plain.Each(input(`["a"]`))
	require.EqualError(t, err, "each of x: ${ start.output.map(n, n * 2) }: * cannot be applied to a string and a number (column 23 of the expression)")
	direct := with(t, `type: worker, topic: a, each: start.output`)
	for output, want := range map[string]string{
		`{}`: "each of x: ${ start.output }: must be a list, this is a mapping",
		`7`:  "must be a list, this is a number",
		`["` + strings.Repeat("x", flow.MaxMappedBytes) + `"]`: "the list has 1048580 bytes, at most 1048576 are allowed",
	} {
		_, err = direct.Each(input(output))
		require.ErrorContains(t, err, want)
	}
}

func texts(elements [][]byte) []string {
	list := make([]string, len(elements))
	for i, e := range elements {
		list[i] = string(e)
	}
	return list
}

// A computed value is checked like a literal.
func TestComputedValues(t *testing.T) {
	t.Parallel()
	sleep := func(a *flow.Activity, s flow.Scope) (any, error) { return a.Sleep(s) }
	key := func(a *flow.Activity, s flow.Scope) (any, error) { return a.Key(s) }
	child := func(a *flow.Activity, s flow.Scope) (any, error) { return a.Child(s) }
	signal := func(a *flow.Activity, s flow.Scope) (any, error) { return a.Signal(s) }
	interrupt := func(a *flow.Activity, s flow.Scope) (any, error) { return a.Interrupt(s) }
	long := strings.Repeat("k", flow.MaxSignalKey+1)
	for i, c := range []struct {
		activity, output string
		eval             func(*flow.Activity, flow.Scope) (any, error)
		want             any // or the error
	}{
		{`type: hook, sleep: 90m`, `{}`, sleep, 90 * time.Minute},
		{`type: hook, sleep: 0s`, `{}`, sleep, time.Duration(0)},
		{`type: hook, sleep: "${ start.output }"`, `"87600h"`, sleep, flow.MaxSleep},
		{`type: hook, sleep: "${ start.output }"`, `"87600h1s"`, sleep, "sleep of x: ${ start.output }: must be from 0s to 87600h"},
		{`type: hook, sleep: "${ start.output }"`, `"-1s"`, sleep, "must be from 0s to 87600h"},
		{`type: hook, sleep: "${ start.output }"`, `5`, sleep, "must be a duration such as 500ms, 30s or 72h"},
		{`type: hook, sleep: "${ start.output }"`, `null`, sleep, "sleep of x: ${ start.output }: must be a string, this is null"},
		{`type: hook, sleep: "${ start.output }h${ start.output }m"`, `2`, sleep, 2*time.Hour + 2*time.Minute},
		{`type: hook, sleep: "${ start.output }${ start.output }"`, `2`, sleep, "sleep of x: must be a duration such as 500ms"},
		{`type: hook, sleep: "${ duration('90s') }"`, `2`, sleep, 90 * time.Second},
		{`type: hook, signal: s, key: "${ job.id }"`, `{}`, key, `or"der`},
		{`type: hook, signal: s, key: "${ start.output }"`, `42`, key, `42`},
		{`type: hook, signal: s, key: "$${a} ${ start.output }"`, `{"a":1}`, key, `${a} {"a":1}`},
		{`type: hook, signal: s, key: "${ start.output }"`, `true`, key, "key of x: ${ start.output }: must be a string, this is a boolean"},
		{`type: hook, signal: s, key: "${ start.output }"`, `""`, key, "has 0 bytes, a key has 1 to 512"},
		{`type: hook, signal: s, key: "${ start.output }"`, `"` + long + `"`, key, "has 513 bytes, a key has 1 to 512"},
		{`type: hook, signal: s, key: "${ start.output }"`, `"a\n"`, key, "a key has no control characters"},
		{`type: hook, signal: s, key: "${ start.output.k }"`, `{}`, key, "key of x: ${ start.output.k }: no such key: k"},
		{`type: await, flow: f`, `{}`, child, flow.Child{Flow: "f"}},
		{`type: await, flow: "f_${ start.output }", version: "${ start.output }", id: "i-${ start.output }"`, `1.5`, child, "must be a name"},
		{`type: await, flow: "f_${ start.output }", version: "${ start.output }.0", id: "i-${ start.output }"`, `7`, child, flow.Child{Flow: "f_7", Version: "7.0", ID: "i-7"}},
		{`type: await, flow: f, version: "${ start.output }"`, `"a b"`, child, "version of x: ${ start.output }: must be letters"},
		{`type: await, flow: f, id: "${ start.output }"`, `"` + long + `"`, child, "id of x: ${ start.output }: has 513 bytes"},
		{`type: signal, topic: t, key: k`, `{}`, signal, flow.Signal{Key: "k", Payload: []byte("null"), Code: 200}},
		{`type: signal, topic: t, key: k, payload: {a: "${ start.output }"}, code: "${ 202 }"`, `[1]`, signal, flow.Signal{Key: "k", Payload: []byte(`{"a":[1]}`), Code: 202}},
		{`type: signal, topic: t, key: k, code: "${ start.output }"`, `201`, signal, "code of x: ${ start.output }: must be 200, 202, or an integer from 400 to 599"},
		{`type: signal, topic: t, key: k, code: "${ start.output }"`, `"503"`, signal, "must be 200, 202, or an integer"},
		{`type: signal, topic: t, key: k, code: "${ start.output }"`, `599`, signal, flow.Signal{Key: "k", Payload: []byte("null"), Code: 599}},
		{`type: signal, topic: t, key: k, payload: "${ start.output.a }"`, `{}`, signal, "payload of x: ${ start.output.a }: no such key: a"},
		{`type: signal, topic: t, key: "${ start.output.a }"`, `{}`, signal, "key of x: "},
		{`type: interrupt`, `{}`, interrupt, flow.Interrupt{Code: 410, Reason: "interrupted"}},
		{`type: interrupt, target: "${ start.output.t }", code: "${ start.output.c }", reason: "no ${ start.output.t }"`, `{"t":"j","c":422}`, interrupt, flow.Interrupt{Target: "j", Code: 422, Reason: "no j"}},
		{`type: interrupt, code: "${ start.output }"`, `200`, interrupt, "code of x: ${ start.output }: must be an integer from 400 to 599"},
		{`type: interrupt, target: "${ start.output }"`, `""`, interrupt, "target of x: ${ start.output }: has 0 bytes"},
		{`type: interrupt, reason: "${ start.output }"`, `"` + strings.Repeat("r", flow.MaxReason+1) + `"`, interrupt, "reason of x: ${ start.output }: has 4097 bytes, at most 4096 are allowed"},
	} {
		got, err := c.eval(with(t, c.activity), input(c.output))
		if err == nil {
			require.Equal(t, c.want, got, c.activity)
			continue
		}
		var failed *flow.EvalError
		require.ErrorAs(t, err, &failed, c.activity)
		require.Equal(t, "x", failed.Activity)
		require.ErrorContains(t, err, fmt.Sprint(c.want), "%d %s", i, c.activity)
	}
}

// Output sees the response itself, and in a hook the signal.
func TestMapOutput(t *testing.T) {
	t.Parallel()
	hook := with(t, `type: hook, signal: s, key: k, sleep: 1h, output: {raw: "${ x.output }", by: "${ x.by }", got: "${ signal == null ? 'none' : signal.payload.ok }", s: "${ signal }"}`)
	require.True(t, hook.HasOutput())
	scope := input(`{}`)
	scope["x"] = flow.Result{Output: []byte(`{"ok":true}`), Code: 200, By: "signal", Ran: true}
	got, err := hook.MapOutput(scope, []byte(`{"code":202,"id":"g","payload":{"ok":true}}`))
	require.NoError(t, err)
	require.Equal(t, `{"by":"signal","got":true,"raw":{"ok":true},"s":{"code":202,"id":"g","payload":{"ok":true}}}`, string(got))
	scope["x"] = flow.Result{Code: 200, By: "timer", Ran: true}
	got, err = hook.MapOutput(scope, nil)
	require.NoError(t, err)
	require.Equal(t, `{"by":"timer","got":"none","raw":null,"s":null}`, string(got))

	worker := with(t, `type: worker, topic: a, output: "${ x.output.id + start.output }"`)
	scope = input(`1`)
	scope["x"] = ran(`{"id":0.5}`)
	got, err = worker.MapOutput(scope, nil)
	require.NoError(t, err)
	require.Equal(t, `1.5`, string(got))
	require.Equal(t, []string{"start", "x"}, worker.MapNeeds())
	scope["x"] = ran(`{}`)
	_, err = worker.MapOutput(scope, nil)
	require.EqualError(t, err, "output of x: ${ x.output.id + start.output }: no such key: id")
	require.False(t, with(t, `type: worker, topic: a`).HasOutput())
}

// 1.10: the result of an activity that was skipped or never ran is null.
func TestSkipped(t *testing.T) {
	t.Parallel()
	x := with(t, `type: worker, topic: a, input: "${ [h.output, h.code, h.error, h.skipped, h.by] }"`)
	scope := input(`1`)
	for want, result := range map[string]flow.Result{
		`[{"a":1},200,null,false,null]`:      ran(`{"a":1}`),
		`[null,200,null,false,"timer"]`:      {Code: 200, By: "timer", Ran: true},
		`[null,503,{"code":503},false,null]`: {Code: 503, Error: []byte(`{"code":503}`), Ran: true},
		`[null,0,null,true,null]`:            {},
	} {
		scope["h"] = result
		got, err := x.Input(scope)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	scope["h"] = flow.Result{Output: []byte(`1`), Code: 200, Skipped: true, Ran: true}
	got, err := x.Input(scope)
	require.NoError(t, err)
	require.Equal(t, `[null,0,null,true,null]`, string(got))
	delete(scope, "h")
	_, err = x.Input(scope)
	require.ErrorContains(t, err, "the result of h was not loaded", "the caller's mistake is not the flow's")
	require.Error(t, errors.Unwrap(err))
}
