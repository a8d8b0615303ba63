package flow_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
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

// A flow is the same in YAML, in Go, in JSON, and stored.
func TestTheSameFlowHasTheSameDigest(t *testing.T) {
	t.Parallel()
	for name, digest := range map[string]string{"order": orderDigest, "all": ""} {
		parsed := readFlow(t, name+".yaml")
		if digest != "" {
			require.Equal(t, digest, parsed.Digest().String(), "stored flows depend on the canonical form")
		}
		built, err := map[string]*flow.Builder{"order": builtOrder(), "all": builtAll()}[name].Build()
		require.NoError(t, err)
		fromJSON, err := flow.Parse(name+".json", parsed.Canonical())
		require.NoError(t, err)
		stored, err := flow.FromCanonical(parsed.Canonical())
		require.NoError(t, err)
		for _, f := range []*flow.Flow{built, fromJSON, stored} {
			require.Equal(t, string(parsed.Canonical()), string(f.Canonical()))
			require.Equal(t, parsed.Digest(), f.Digest())
			require.Equal(t, modelOf(parsed), modelOf(f))
		}
		same, err := canonical.Payload(parsed.Canonical())
		require.NoError(t, err)
		require.Equal(t, parsed.Canonical(), same)
	}
}

// modelOf shows all that a flow says of itself.
func modelOf(f *flow.Flow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s version %s, identity %s, expire %s, output needs %v\n", f.Name(), f.Version(), f.Identity(), f.Expire(), f.OutputNeeds())
	if s := f.Schedule(); s != nil {
		fmt.Fprintf(&b, "schedule %s in %s, catch up %s, input %s\n", s.Cron, s.Zone, s.CatchUp, s.Input)
	}
	for _, a := range f.Activities() {
		fmt.Fprintf(&b, "%d %s", a.Index, a.Name)
		v := reflect.ValueOf(*a)
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			switch value := v.Field(i); {
			case !v.Type().Field(i).IsExported() || value.IsZero() || name == "Name" || name == "Index":
			case name == "Parent" || name == "To":
				fmt.Fprintf(&b, ", %s %s", name, value.Interface().(*flow.Activity).Name)
			case name == "In" || name == "Out":
				fmt.Fprintf(&b, ", %s", name)
				for _, x := range value.Interface().([]*flow.Transition) {
					fmt.Fprintf(&b, " [%s to %s, on error %t, needs %v]", x.From.Name, x.To.Name, x.OnError, x.Needs())
				}
			default:
				fmt.Fprintf(&b, ", %s %+v", name, value)
			}
		}
		fmt.Fprintf(&b, ", needs %v, output needs %v, has output %t, passes %t, passes through %t\n",
			a.InputNeeds(), a.MapNeeds(), a.HasOutput(), a.Passes(), a.PassThrough())
	}
	return b.String()
}
