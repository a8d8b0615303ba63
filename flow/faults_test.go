package flow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// Faults of sources that are too large, or no text, for a transcript.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, src, want string }{
		"not text":       {"f.yaml", "flow: a\nversion: \"\xff\"", "f.yaml:2:11: not UTF-8 text"},
		"deep":           {"f.yaml", worker("input: " + strings.Repeat("[", 300) + strings.Repeat("]", 300)), "nested deeper than 200"},
		"deep in a line": {"f.yaml", worker("input:", strings.Repeat("- ", 300)+"a"), "nested deeper than 200"},
		"deep JSON":      {"f.json", strings.Repeat("[", 300), "f.json:1:201: not JSON: nested deeper than 200"},
		"crowded join":   {"f.yaml", transitions("  start: [" + strings.Repeat("w, ", 99) + "w, v]\n"), "f.yaml:8:308: more than 99 transitions lead to w; let some of them meet before it: w"},
	} {
		_, err := flow.Parse(c.file, []byte(c.src))
		require.ErrorAs(t, err, new(flow.Faults), name)
		require.ErrorContains(t, err, c.want, name)
	}
}

func TestFaultsOfABuilder(t *testing.T) {
	t.Parallel()
	_, err := flow.New("Order").Version("1").Input(`{"type":`).Output(func() {}).
		Trigger("start").Trigger("start").
		Worker("w", "a", flow.Input(make(chan int)), flow.Timeout(-time.Second), flow.Retry{Attempts: -1}).
		Worker("v", "a", flow.Descend(), flow.Each("start.output"), flow.Payload(make(chan int)), flow.JoinAny).
		Hook("h", flow.Sleep("5"), flow.WaitFor("T", "")).
		Schedule(flow.Schedule{Cron: "x", Input: []byte("{")}).
		Transition("start", "v").Transition("start", "h").
		Transition("start", "w", flow.When("w.code ==")).Build()
	var faults flow.Faults
	require.ErrorAs(t, err, &faults)
	for _, want := range []string{
		"flow: must be a name: [a-z][a-z0-9_]*: Order", "input: not JSON: ", "output: json: unsupported type: func()",
		"activities.start: the key comes twice: start", "activities.w: json: unsupported type: chan int",
		"activities.w.timeout: must be from 1ms to 8760h: -1s", "activities.w.retry.attempts: must be an integer from 1 to 1000: -1",
		"transitions.start[2].when: ", "schedule.input: not JSON: ", "schedule.cron: refused schedule: ",
		"activities.v: json: unsupported type: chan int", "activities.v.descend: unknown key; a worker takes ",
		"activities.v.join: only one transition leads to v", "activities.h.sleep: must be a duration", "activities.h.signal: must be a topic",
		"activities.h.key: has 0 bytes",
	} {
		require.Contains(t, err.Error(), want)
	}
	for _, f := range faults {
		require.Zero(t, f.Line, "a built flow has no lines")
	}
}

func TestAliasesAreCountedAsWhatTheyStandFor(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	_, err := flow.Parse("f.yaml", []byte(bomb.String()))
	require.ErrorContains(t, err, "more than 1000000 values, with aliases")
}

func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	var src strings.Builder
	src.WriteString(head + "activities:\n  start: {type: trigger}\n")
	for i := range flow.MaxFaults + 50 {
		fmt.Fprintf(&src, "  w%d: {type: worker, topic: a}\n", i)
	}
	_, err := flow.Parse("f.yaml", []byte(src.String()))
	var faults flow.Faults
	require.ErrorAs(t, err, &faults)
	require.Len(t, faults, flow.MaxFaults)
	require.Contains(t, faults[len(faults)-1].Message, "(and 50 more faults)")
	_, err = flow.Parse("f.yaml", make([]byte, flow.MaxDefinitionBytes+1))
	require.ErrorContains(t, err, "at most 8388608 bytes")
}

// A warning has a path, as a fault has.
func TestWarningsHavePaths(t *testing.T) {
	t.Parallel()
	f, err := flow.Parse("f.yaml", []byte(worker("class: guarded")))
	require.NoError(t, err)
	require.Equal(t, "activities.w.class", f.Warnings()[0].Path)
}

// What follows from a fault that leaves out all activities, or transitions, is not reported.
func TestLimitsHaveOneFault(t *testing.T) {
	t.Parallel()
	activities := func(n int) string {
		return head + "output: \"${ w1.output }\"\nactivities:\n  start: {type: trigger}\n" + numberedLines("  w%d: {type: worker, topic: a}\n", n)
	}
	for want, src := range map[string]string{
		"20002 activities, at most 20000 are allowed":                   activities(flow.MaxActivities+1) + "transitions:\n" + numberedLines("  w%d: [w1]\n", flow.MaxActivities),
		"1001 transitions leave one activity, at most 1000 are allowed": activities(flow.MaxOut+1) + "transitions: {start: [" + numberedLines("w%d, ", flow.MaxOut+1) + "]}\n",
		"must be a mapping, this is a list":                             head + "activities: []\ntransitions: {a: [b, c]}\n",
		"the key activities is missing":                                 head + "output: \"${ a.output }\"\ntransitions: {a: [b, c]}\n",
	} {
		_, err := flow.Parse("f.yaml", []byte(src))
		require.ErrorContains(t, err, want)
		require.Len(t, err, 1)
	}
}

func numberedLines(format string, n int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, format, i)
	}
	return lines.String()
}

// An editor's byte-order mark means nothing, and moves no place.
func TestByteOrderMarkMeansNothing(t *testing.T) {
	t.Parallel()
	const yaml, json = head + "activities: {start: {type: trigger}}\n", `{"flow":"a","version":"1","activities":{"start":{"type":"trigger"}}}`
	want, err := flow.Parse("f.yaml", []byte(yaml))
	require.NoError(t, err)
	for name, src := range map[string]string{"f.yaml": yaml, "g.yaml": json, "f.json": json} {
		f, err := flow.Parse(name, []byte("\uFEFF"+src))
		require.NoError(t, err)
		require.Equal(t, want.Digest(), f.Digest())
		_, err = flow.Parse(name, []byte("\uFEFF"+strings.Replace(src, "flow", "flop", 1)))
		require.ErrorContains(t, err, map[bool]string{true: ":1:1: unknown key", false: ":1:2: unknown key"}[src == yaml])
	}
	_, err = flow.FromCanonical([]byte("\uFEFF" + string(want.Canonical())))
	require.Error(t, err, "what is stored is changed")
}
