package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// builtAll is testdata/all.yaml, in Go.
func builtAll() *flow.Builder {
	type m = map[string]any
	return flow.New("all").Version("1").Input(`{"type":"object"}`).
		Output(m{"n": "${ pivot.output.n }", "d": "${ review.output }"}).
		Schedule(flow.Schedule{Cron: "0 2 * * *", Zone: "Europe/Berlin", CatchUp: flow.CatchUpAll, Input: []byte(`{"kind": "nightly", "sum": "${ 1 + 1 }"}`)}).
		Trigger("start").
		Hook("pivot", flow.Input(m{"n": 0})).
		Worker("items", "stock.reserve", flow.Each("start.output.lines.filter(l, l.n > 0)"), flow.Parallel(7), flow.CollectErrors(),
			flow.Input(m{"line": "${ item.sku }", "n": "${ index }", "who": "${ start.output.who }"}),
			flow.Output(m{"first": "${ items.output[0] }"}), flow.Timeout(5*time.Second)).
		Await("child", "${ start.output.flow }", flow.ChildVersion("v-${ start.output.v }"), flow.ChildID("inv-${ job.id }"), flow.Detached(),
			flow.Input(m{"total": "${ start.output.total }"}), flow.Output("${ child.output.id }"), flow.Retry{Attempts: 2}, flow.Within(time.Hour)).
		Hook("review", flow.WaitFor("order.reviewed", "${ job.id }"), flow.Sleep("${ start.output.days }h"), flow.Expires(36*time.Hour),
			flow.Within(90*time.Minute),
			flow.Output(m{"by": "${ review.by }", "ok": "${ review.by == 'signal' && signal.payload.ok }", "signal": "${ signal }"})).
		Hook("nap", flow.Sleep("72h")).
		Signal("tell", "order.reviewed", "${ start.output.other }", flow.ToAll(), flow.Payload(m{"ok": true, "why": "${ child.error }"}),
			flow.Code("${ start.output.code }"), flow.Output(m{"told": "${ start.output.other }"})).
		Worker("meet", "a.b", flow.JoinAny, flow.Input(m{"a": "${ child.output }", "b": "${ tell.skipped }"})).
		Cycle("again", "pivot", flow.Max(100), flow.Input(m{"n": "${ pivot.output.n + 1 }"})).
		Interrupt("stop", flow.Code(409), flow.Reason("refused: ${ review.output }"), flow.Complete(), flow.Descend()).
		Interrupt("kill", flow.Target("x-${ job.id }"), flow.Code("${ start.output.code }"), flow.Output(m{"done": "${ kill.code }"})).
		Worker("end", "a.b", flow.Input("${ [kill.code, nap.by, review.skipped] }")).
		Hook("ticks", flow.WaitFor("tick", "k"), flow.Repeat()).
		Transition("start", "pivot").
		Transition("pivot", "items").
		Transition("items", "child").
		Transition("items", "nap", flow.OnError()).
		Transition("items", "review").
		Transition("child", "meet").
		Transition("child", "tell", flow.OnError()).
		Transition("tell", "meet").
		Transition("nap", "end").
		Transition("nap", "end", flow.OnError()).
		Transition("meet", "again", flow.When("pivot.output.n < 5")).
		Transition("review", "kill", flow.When("review.by == 'signal'")).
		Transition("review", "stop", flow.When("review.by == 'timer'")).
		Transition("kill", "end").
		Transition("end", "ticks")
}

func TestEveryTypeInYAMLAndGo(t *testing.T) {
	t.Parallel()
	parsed := readFlow(t, "all.yaml")
	built, err := builtAll().Build()
	require.NoError(t, err)
	require.Equal(t, string(parsed.Canonical()), string(built.Canonical()))
	stored, err := flow.FromCanonical(parsed.Canonical())
	require.NoError(t, err)
	require.Equal(t, parsed.Digest(), stored.Digest())
	for i, a := range parsed.Activities() {
		for _, f := range []*flow.Flow{built, stored} {
			b := f.Activities()[i]
			require.Equal(t, a.Name, b.Name)
			require.Equal(t, a.InputNeeds(), b.InputNeeds())
			require.Equal(t, a.MapNeeds(), b.MapNeeds())
			require.Equal(t, sourcesOf(a), sourcesOf(b), "the order of what leads to %s", a.Name)
		}
	}
}

func sourcesOf(a *flow.Activity) []string {
	var names []string
	for _, t := range a.In {
		names = append(names, t.From.Name)
	}
	return names
}

// place is what the graph says about an activity.
type place struct {
	parent      string
	depth       int
	join        flow.Join
	leadsToJoin bool
	in          []string
}

// 1.9, 1.10: addresses follow the dominators.
func TestGraphOfEveryType(t *testing.T) {
	t.Parallel()
	f := readFlow(t, "all.yaml")
	require.Equal(t, []string{"start", "pivot", "items", "child", "nap", "review", "meet", "tell", "end", "kill", "stop", "again", "ticks"}, namesOf(f))
	places := map[string]place{
		"start":  {"", 0, "", true, nil},
		"pivot":  {"start", 1, "", true, []string{"start"}},
		"items":  {"pivot", 2, "", true, []string{"pivot"}},
		"child":  {"items", 3, "", true, []string{"items"}},
		"nap":    {"items", 3, "", true, []string{"items"}},
		"review": {"items", 3, "", true, []string{"items"}},
		"meet":   {"child", 4, flow.JoinAny, true, []string{"child", "tell"}},
		"tell":   {"child", 4, "", true, []string{"child"}},
		"end":    {"items", 3, flow.JoinAll, true, []string{"nap", "nap", "kill"}},
		"kill":   {"review", 4, "", true, []string{"review"}},
		"stop":   {"review", 4, "", false, []string{"review"}},
		"again":  {"meet", 5, "", false, []string{"meet"}},
		"ticks":  {"end", 4, "", false, []string{"end"}},
	}
	for _, a := range f.Activities() {
		p := place{depth: a.Depth, join: a.Join, leadsToJoin: a.LeadsToJoin, in: sourcesOf(a)}
		if a.Parent != nil {
			p.parent = a.Parent.Name
		}
		require.Equal(t, places[a.Name], p, a.Name)
	}
}

func TestModelOfEveryType(t *testing.T) {
	t.Parallel()
	f := readFlow(t, "all.yaml")
	items, child, review := mustActivity(t, f, "items"), mustActivity(t, f, "child"), mustActivity(t, f, "review")
	require.True(t, items.HasEach && items.Collect && items.HasOutput())
	require.Equal(t, 7, items.Parallel)
	require.Equal(t, []string{"start"}, items.InputNeeds())
	require.Equal(t, []string{"items"}, items.MapNeeds())
	require.False(t, child.Awaited)
	require.Equal(t, flow.Retry{Attempts: 2, Backoff: time.Second, Factor: 2, Max: time.Minute, Jitter: 0.2}, child.Retry)
	require.Equal(t, time.Hour, child.Within)
	require.Equal(t, "order.reviewed", review.Topic)
	require.True(t, review.HasSleep && !review.Repeat && !review.Passes() && !review.PassThrough())
	require.Equal(t, 36*time.Hour, review.MaxAge)
	require.Equal(t, 90*time.Minute, review.Within)
	require.Equal(t, []string{"start"}, review.InputNeeds())
	require.Equal(t, []string{"review"}, review.MapNeeds())
	pivot, again, tell := mustActivity(t, f, "pivot"), mustActivity(t, f, "again"), mustActivity(t, f, "tell")
	require.True(t, pivot.Pivot && pivot.PassThrough() && pivot.Passes())
	require.Same(t, pivot, again.To)
	require.Equal(t, 100, again.Max)
	require.Equal(t, []string{"pivot"}, again.InputNeeds())
	require.True(t, tell.All)
	require.Equal(t, []string{"child", "start"}, tell.InputNeeds())
	stop, kill := mustActivity(t, f, "stop"), mustActivity(t, f, "kill")
	require.True(t, !stop.HasTarget && !stop.Throw && stop.Descend)
	require.True(t, kill.HasTarget && kill.Throw && !kill.Descend)
	require.Equal(t, []string{"review"}, stop.InputNeeds())
	nap, ticks := mustActivity(t, f, "nap"), mustActivity(t, f, "ticks")
	require.True(t, ticks.Repeat && ticks.Passes() && !ticks.HasSleep)
	require.True(t, nap.HasSleep && nap.Topic == "" && !nap.PassThrough() && !nap.Passes())
	require.Equal(t, &flow.Schedule{Cron: "0 2 * * *", Zone: "Europe/Berlin", CatchUp: flow.CatchUpAll, Input: []byte(`{"kind":"nightly","sum":2}`)}, f.Schedule())
	require.Nil(t, readFlow(t, "order.yaml").Schedule())
}

// Spelling a default out makes no difference.
func TestDefaultsAreSpelledOut(t *testing.T) {
	t.Parallel()
	source := func(activity, schedule string) string {
		return head + schedule + "activities:\n  start: {type: trigger}\n  pivot: {type: hook}\n  w: {type: worker, topic: a}\n  x: {" + activity +
			"}\n  y: {type: worker, topic: b, input: '${ x.skipped }'}\ntransitions: {start: [pivot], pivot: [x, w], x: [y], w: [y]}\n"
	}
	const tail = "transitions: {start: [pivot], pivot: [x, w]}\n"
	for name, c := range map[string]struct{ short, long string }{
		"worker": {"type: worker, topic: a", "type: worker, topic: a, retry: {attempts: 3, backoff: 1s, factor: 2, max: 1m, jitter: 0.2}"},
		"each": {
			"type: worker, topic: a, each: start.output",
			"type: worker, topic: a, each: '${start.output }', parallel: 100.0, each_errors: fail, input: '${ item }'",
		},
		"await":     {"type: await, flow: f", "type: await, flow: f, await: true, retry: {attempts: 1, backoff: 1000ms, factor: 2.0, max: 60s}"},
		"hook":      {"type: hook, signal: a, key: k", "type: hook, signal: a, key: k, repeat: false"},
		"sleep":     {"type: hook, sleep: 72h", "type: hook, sleep: 4320m"},
		"signal":    {"type: signal, topic: a, key: k", "type: signal, topic: a, key: k, mode: one, payload: null, code: 200.0"},
		"interrupt": {"type: interrupt, target: x", "type: interrupt, target: x, code: 410, reason: interrupted, throw: true, descend: false"},
	} {
		short, err := flow.Parse("f.yaml", []byte(source(c.short, "")))
		require.NoError(t, err, name)
		long, err := flow.Parse("f.yaml", []byte(source(c.long, "")))
		require.NoError(t, err, name)
		require.Equal(t, string(short.Canonical()), string(long.Canonical()), name)
		require.Contains(t, string(short.Canonical()), `"join":"all"`)
	}
	for name, c := range map[string]struct{ short, long string }{
		"cycle":    {"type: cycle, to: pivot", "type: cycle, to: pivot, max: 10000"},
		"own job":  {"type: interrupt", "type: interrupt, code: 410, reason: interrupted, throw: true, descend: false"},
		"schedule": {"type: hook", "type: hook"},
	} {
		flows := make([]string, 2)
		for i, activity := range []string{c.short, c.long} {
			schedule := []string{"schedule: {cron: 0 2 * * *}\n", "schedule: {cron: 0 2 * * *, zone: UTC, catch_up: one, input: {}}\n"}[i]
			f, err := flow.Parse("f.yaml", []byte(head+schedule+"activities:\n  start: {type: trigger}\n  pivot: {type: hook}\n  w: {type: worker, topic: a}\n  x: {"+activity+"}\n"+tail))
			require.NoError(t, err, name)
			flows[i] = string(f.Canonical())
		}
		require.Equal(t, flows[0], flows[1], name)
	}
}
