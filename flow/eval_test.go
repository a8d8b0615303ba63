package flow_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
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

func (results) Budget() *flow.Budget { return flow.NewBudget(nil) }

func ran(output string) flow.Result {
	return flow.Result{Output: []byte(output), Code: 200, Ran: true}
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

// Without an expression nothing is read, and every input fits.
func TestFlowWithoutExpressions(t *testing.T) {
	t.Parallel()
	f, err := flow.New("a").Version("1").Trigger("start").Build()
	require.NoError(t, err)
	got, err := f.Output(results{})
	require.NoError(t, err)
	require.Equal(t, `null`, string(got))
	require.NoError(t, f.CheckInput([]byte(`7`), flow.NewBudget(nil)))
	first := readFlow(t, "order.yaml").Trigger().Out[0]
	taken, err := first.Taken(nil)
	require.NoError(t, err)
	require.True(t, taken)
	require.Empty(t, first.Needs())
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

// A flow with very many activities, most of them around joins, compiles.
func TestWideFlow(t *testing.T) {
	t.Parallel()
	const many = flow.MaxActivities / 4
	src := []byte(woven(many - 1))
	start := time.Now()
	f, err := flow.Parse("woven.json", src)
	require.NoError(t, err)
	t.Logf("parsed %d activities in %v", len(f.Activities()), time.Since(start))
	last := f.Activities()[len(f.Activities())-1]
	require.Equal(t, flow.JoinAll, last.Join)
	require.Equal(t, (many-2)/3, last.Depth)
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
