package flow_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/flow"
)

// results is a Scope over fixed results.
type results map[string]flow.Result

func (r results) Result(name string) (flow.Result, bool) {
	result, ok := r[name]
	return result, ok
}

func (results) Job() flow.JobInfo {
	return flow.JobInfo{ID: `or"der`, Flow: "order", Version: "1", StartedMicros: 1_700_000_000_000_001}
}

func ran(output string) flow.Result {
	return flow.Result{Output: []byte(output), Code: 200, Ran: true}
}

func TestInput(t *testing.T) {
	t.Parallel()
	f := readFlow(t, "order.yaml")
	scope := results{"start": ran(`{"customer":"Zoë \"Z\"","total":19.99}`)}
	got, err := mustActivity(t, f, "charge").Input(scope)
	require.NoError(t, err)
	require.Equal(t, `{"amount":19.99,"fee":0.1,"list":[1,23.7881,null],"mode":"live","who":"order or\"der of Zoë \"Z\", ${literal}"}`, string(got))
	same, err := canonical.Payload(got)
	require.NoError(t, err)
	require.Equal(t, string(got), string(same))

	got, err = mustActivity(t, f, "ship").Input(scope)
	require.NoError(t, err)
	require.Equal(t, `{}`, string(got), "no input clause")
}

// E11: a failed expression names its place; the caller makes it an error.
func TestE11AFailedExpressionNamesItsPlace(t *testing.T) {
	t.Parallel()
	f := readFlow(t, "order.yaml")
	charge := mustActivity(t, f, "charge")
	_, err := charge.Input(results{"start": ran(`{"customer":"a"}`)})
	var failed *flow.EvalError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, flow.EvalError{Activity: "charge", Place: "input", Expression: "start.output.total", Err: failed.Err}, *failed)
	require.EqualError(t, err, "input of charge: ${ start.output.total }: no such key: total")

	_, err = charge.Input(results{})
	require.ErrorContains(t, err, "the result of start was not loaded")
	_, err = charge.Out[1].Taken(results{"charge": ran(`{"risk":"high"}`)})
	require.EqualError(t, err, "when of the transition to ship of charge: ${ charge.output.risk <= 0.5 }: <= cannot be applied to a string and a number (column 20 of the expression)")
	_, err = f.Output(results{})
	require.EqualError(t, err, "output: ${ charge.output.id }: no such key: id; charge did not run, so its output is null: test charge.skipped first")
}

func TestConditions(t *testing.T) {
	t.Parallel()
	f := readFlow(t, "order.yaml")
	charge := mustActivity(t, f, "charge")
	declined := results{"charge": {Code: 402, Error: []byte(`{"code":402,"message":"declined"}`), Ran: true}}
	taken, err := charge.Out[0].Taken(declined)
	require.NoError(t, err)
	require.True(t, taken)
	for risk, want := range map[string]bool{"0.5": true, "0.50000000000000000001": false, "0": true, "1e-30": true} {
		number, err := canonical.Payload([]byte(risk))
		require.NoError(t, err)
		taken, err := charge.Out[1].Taken(results{"charge": ran(`{"risk":` + string(number) + `}`)})
		require.NoError(t, err)
		require.Equal(t, want, taken, risk)
	}
	taken, err = f.Trigger().Out[0].Taken(nil)
	require.NoError(t, err)
	require.True(t, taken, "no condition")
	require.Empty(t, f.Trigger().Out[0].Needs())
}

// Output sees the whole job: an activity that never ran is null and skipped.
func TestOutput(t *testing.T) {
	t.Parallel()
	f := readFlow(t, "order.yaml")
	got, err := f.Output(results{"charge": ran(`{"id":"ch_1"}`), "ship": ran(`null`)})
	require.NoError(t, err)
	require.Equal(t, `{"paid":1.1,"receipt":"ch_1","shipped":true}`, string(got))
	got, err = f.Output(results{"charge": ran(`{"id":"ch_1"}`)})
	require.NoError(t, err)
	require.Equal(t, `{"paid":1.1,"receipt":"ch_1","shipped":false}`, string(got))

	f, err = flow.New("a").Version("1").Trigger("start").
		Output("${ [start.output, start.code, start.error, start.skipped, job.id, job.flow, job.version, job.started] }").Build()
	require.NoError(t, err)
	got, err = f.Output(results{})
	require.NoError(t, err)
	require.Equal(t, `[null,0,null,true,"or\"der","order","1","2023-11-14T22:13:20.000001Z"]`, string(got))
	f, err = flow.New("a").Version("1").Trigger("start").Build()
	require.NoError(t, err)
	got, err = f.Output(results{})
	require.NoError(t, err)
	require.Equal(t, `null`, string(got), "no output clause")
}

func TestResultsAreBounded(t *testing.T) {
	t.Parallel()
	f, err := flow.New("a").Version("1").Trigger("start").Worker("w", "a.b", flow.Input([]any{"${ start.output }", "${ start.output }"})).
		Transition("start", "w").Build()
	require.NoError(t, err)
	w := mustActivity(t, f, "w")
	_, err = w.Input(results{"start": ran(`"` + strings.Repeat("x", flow.MaxMappedBytes/2) + `"`)})
	require.ErrorContains(t, err, "more than 1048576 bytes")
	_, err = w.Input(results{"start": ran(strings.Repeat("[", canonical.MaxDepth) + strings.Repeat("]", canonical.MaxDepth))})
	require.ErrorContains(t, err, "nested deeper than 200")
	_, err = w.Input(results{"start": ran(strings.Repeat("[", canonical.MaxDepth-1) + strings.Repeat("]", canonical.MaxDepth-1))})
	require.NoError(t, err)
}

func TestConstantInputIsComputedOnce(t *testing.T) {
	t.Parallel()
	f, err := flow.New("a").Version("1").Trigger("start").Worker("w", "a.b", flow.Input(map[string]any{"b": 1, "a": "$${x}"})).
		Transition("start", "w").Build()
	require.NoError(t, err)
	one, err := mustActivity(t, f, "w").Input(nil)
	require.NoError(t, err)
	require.Equal(t, `{"a":"${x}","b":1}`, string(one))
	two, err := mustActivity(t, f, "w").Input(nil)
	require.NoError(t, err)
	require.Same(t, &one[0], &two[0])
}

func TestCheckInput(t *testing.T) {
	t.Parallel()
	f := readFlow(t, "order.yaml")
	require.NoError(t, f.CheckInput([]byte(`{"lines":[{"sku":"a"}],"total":0.01}`)))
	err := f.CheckInput([]byte(`{"lines":[{"sku":"a"},{}],"total":0.0099999999999999999999}`))
	var misfit *flow.InputError
	require.ErrorAs(t, err, &misfit)
	require.Equal(t, "order", misfit.Flow)
	require.Contains(t, err.Error(), "$.lines[1]: missing property 'sku'")
	require.Contains(t, err.Error(), "$.total: minimum")
	require.ErrorContains(t, f.CheckInput([]byte(`{}`)), "$: missing property 'total'")
	anything, err := flow.New("a").Version("1").Trigger("start").Build()
	require.NoError(t, err)
	require.NoError(t, anything.CheckInput([]byte(`7`)))
}

// long is a flow of n workers one after another, each with two expressions.
func long(n int) string {
	var b strings.Builder
	b.WriteString("flow: long\nversion: \"1\"\nactivities:\n  s0: {type: trigger}\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "  s%d: {type: worker, topic: a.b, input: {x: \"${ s%d.output.x + 1 }\", total: \"${ s0.output.total }\"}}\n", i, i-1)
	}
	b.WriteString("transitions:\n")
	for i := range n {
		fmt.Fprintf(&b, "  s%d: [{to: s%d, when: s%d.code == 200}]\n", i, i+1, i)
	}
	return b.String()
}

// A flow of thousands of activities in a row compiles in seconds and stays small, from
// its source and from its canonical form.
func TestLongFlow(t *testing.T) { // not parallel: it measures the heap
	const n = 2_500
	src := []byte(long(n))
	start := time.Now()
	f, err := flow.Parse("long.yaml", src)
	require.NoError(t, err)
	parsed := time.Since(start)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start = time.Now()
	stored, err := flow.FromCanonical(f.Canonical())
	require.NoError(t, err)
	compiled := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("parsed in %v, compiled again in %v, %d bytes each", parsed, compiled, (after.HeapAlloc-before.HeapAlloc)/n)
	require.Less(t, parsed, 3*time.Minute)
	require.Less(t, compiled, 3*time.Minute)
	require.Less(t, (after.HeapAlloc-before.HeapAlloc)/n, uint64(5_000), "bytes for each activity")
	require.Equal(t, f.Digest(), stored.Digest())
	last := stored.Activities()[n]
	require.Equal(t, n, last.Depth)
	require.Equal(t, []string{"s0", fmt.Sprintf("s%d", n-1)}, last.InputNeeds())
}

// woven is a flow of n activities in groups of three, in JSON: two branches that meet in
// a third activity, which mentions both and one much earlier.
func woven(n int) string {
	var b, links strings.Builder
	b.WriteString(`{"flow": "woven", "version": "1", "activities": {"s0": {"type": "trigger"}`)
	links.WriteString(`"s0": ["s1", "s2"], "s1": ["s3"], "s2": ["s3"]`)
	for i := 1; i+2 <= n; i += 3 {
		old := max(1, i-n/2/3*3)
		fmt.Fprintf(&b, `, "s%d": {"type": "worker", "topic": "a"}, "s%d": {"type": "hook", "sleep": "1h"}`, i, i+1)
		fmt.Fprintf(&b, `, "s%d": {"type": "worker", "topic": "a", "input": "${ [s%d.output, s%d.by, s%d.skipped] }"}`, i+2, i, i+1, old)
		if i > 1 {
			fmt.Fprintf(&links, `, "s%d": [{"to": "s%d", "when": "s%d.code == 200"}, "s%d"], "s%d": ["s%d"], "s%d": ["s%d"]`, i-1, i, i-1, i+1, i, i+2, i+1, i+2)
		}
	}
	return b.String() + `}, "transitions": {` + links.String() + "}}"
}

// A flow with the maximum of activities, most of them around joins, compiles.
func TestWideFlow(t *testing.T) {
	t.Parallel()
	src := []byte(woven(flow.MaxActivities - 1))
	start := time.Now()
	f, err := flow.Parse("woven.json", src)
	require.NoError(t, err)
	t.Logf("parsed %d activities in %v", len(f.Activities()), time.Since(start))
	last := f.Activities()[len(f.Activities())-1]
	require.Equal(t, flow.JoinAll, last.Join)
	require.Equal(t, (flow.MaxActivities-2)/3, last.Depth)
}

// A compiled flow can be used by many goroutines at once.
func TestAFlowIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	f := readFlow(t, "order.yaml")
	charge := mustActivity(t, f, "charge")
	var group sync.WaitGroup
	failures := make(chan error, 8)
	for i := range cap(failures) {
		group.Go(func() {
			scope := results{"start": ran(fmt.Sprintf(`{"customer":"c","total":%d}`, i)), "charge": ran(`{"id":"x","risk":0.1}`)}
			for range 50 {
				input, err := charge.Input(scope)
				if err == nil && !strings.HasPrefix(string(input), fmt.Sprintf(`{"amount":%d,`, i)) {
					err = fmt.Errorf("%d got %s", i, input)
				}
				if taken, failed := charge.Out[1].Taken(scope); failed != nil || !taken {
					err = fmt.Errorf("taken %t: %w", taken, failed)
				}
				if err != nil {
					failures <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
}

// A field that is a word of the expression language is read by its index.
func TestFieldThatIsAWord(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"in", "true", "null"} {
		f, err := flow.Parse("f.yaml", []byte("flow: f\nversion: \"1\"\noutput: ${ start.output[\""+word+"\"] }\nactivities: {start: {type: trigger}}\n"))
		require.NoError(t, err)
		out, err := f.Output(results{"start": ran(`{"` + word + `":7}`)})
		require.NoError(t, err)
		require.JSONEq(t, "7", string(out))
	}
}
