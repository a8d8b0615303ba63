package flow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

const head = "flow: a\nversion: \"1\"\n"

// worker is a flow with one worker w that has the given lines.
func worker(lines ...string) string {
	return head + "activities:\n  start: {type: trigger}\n  w:\n    type: worker\n    topic: a.b\n    " +
		strings.Join(lines, "\n    ") + "\ntransitions: {start: [w]}\n"
}

func transitions(text string) string {
	return head + "activities:\n  start: {type: trigger}\n  w: {type: worker, topic: a}\n  v: {type: worker, topic: b}\ntransitions:\n" + text
}

// faultCases are sources and their faults.
var faultCases = map[string]struct{ src, want string }{
	"empty":              {"", "f.yaml:1:1: the file is empty"},
	"scalar":             {"hello", "f.yaml:1:1: a flow is a mapping, this is a string: hello"},
	"not YAML":           {"a: [", "f.yaml:1:4: not YAML: "},
	"tab":                {head + "activities:\n\tstart: {type: trigger}\n", `\t`},
	"tab, advice":        {head + "activities:\n\tstart: {type: trigger}\n", "YAML indents with spaces, not with tabs"},
	"word as a field":    {worker("input: ${ start.output.in }"), `f.yaml:8:28: in is a word of the expression language: write start.output["in"]: start.output.in`},
	"word in a sum":      {worker("input: ${ 1 + start.output.a.true.b }"), `true is a word of the expression language: write start.output.a["true"]`},
	"two documents":      {worker() + "---\na: 1\n", "a file holds one flow"},
	"not text":           {"flow: a\nversion: \"\xff\"", "f.yaml:2:11: not UTF-8 text"},
	"missing":            {"{}", "f.yaml:1:1: the key version is missing"},
	"no activities":      {head + "activities: {}\n", "at least a trigger"},
	"no trigger":         {head + "activities: {w: {type: worker, topic: a}}", "f.yaml:3:14: a flow has exactly one trigger, there is none"},
	"two triggers":       {head + "activities:\n  a: {type: trigger}\n  b: {type: trigger}\n", "f.yaml:5:3: a flow has exactly one trigger, the first is a: b"},
	"duplicate key":      {head + "flow: b\nactivities: {a: {type: trigger}}", "f.yaml:3:1: the key comes twice, first in line 1: flow"},
	"duplicate activity": {head + "activities:\n  a: {type: trigger}\n  a: {type: trigger}\n", "f.yaml:5:3: the key comes twice, first in line 4: a"},
	"hook key":           {worker("sleep: 1h"), "f.yaml:8:5: unknown key; a worker takes type, input, output, retry, timeout, within, join, topic, each, parallel, each_errors, class: sleep"},
	"bad name":           {head + "activities: {Start: {type: trigger}}", "f.yaml:3:14: must be a name"},
	"long name":          {head + "activities: {" + strings.Repeat("a", 65) + ": {type: trigger}}", "65 characters, at most 64"},
	"reserved name":      {head + "activities: {job: {type: trigger}}", "f.yaml:3:14: this word means something else"},
	"word of CEL":        {head + "activities: {in: {type: trigger}}", "this word means something else"},
	"unknown type":       {head + "activities: {a: {type: robot}}", "f.yaml:3:24: unknown type"},
	"no type":            {head + "activities: {a: {topic: b}}", "f.yaml:3:17: the key type is missing"},
	"no topic":           {head + "activities: {a: {type: worker}}", "the key topic is missing"},
	"trigger with input": {head + "activities: {a: {type: trigger, input: {}}}", "a trigger does not take this key"},
	"long topic":         {worker("class: pure")[:0] + strings.Replace(worker(), "a.b", strings.Repeat("a", 129), 1), "129 characters, at most 128"},
	"class":              {worker("class: magic"), "f.yaml:8:12: must be one of pure, tx, idempotent, guarded: magic"},
	"identity":           {"identity: x\n" + worker(), "f.yaml:1:11: must be one of caller, strict: x"},
	"version":            {"flow: a\nversion: a b\nactivities: {a: {type: trigger}}", "f.yaml:2:10: must be letters"},
	"attempts":           {worker("retry: {attempts: 1.5}"), "f.yaml:8:23: must be an integer from 1 to 1000: 1.5"},
	"factor":             {worker("retry: {factor: 0.5}"), "must be from 1 to 100: 0.5"},
	"jitter":             {worker("retry: {jitter: 2}"), "must be from 0 to 1: 2"},
	"jitter type":        {worker("retry: {jitter: x}"), "must be a number, this is a string: x"},
	"max below backoff":  {worker("retry: {backoff: 10s, max: 5s}"), "f.yaml:8:32: must be from 10s to 8760h: 5s"},
	"retry key":          {worker("retry: {tries: 2}"), "f.yaml:8:13: unknown key; a retry takes attempts, backoff, factor, max, jitter: tries"},
	"short timeout":      {worker("timeout: 0s"), "f.yaml:8:14: must be from 1ms to 8760h: 0s"},
	"computed timeout":   {worker(`timeout: "${ start.output.t }"`), "of all durations only sleep takes expressions"},
	"expire":             {"expire: 1ms\n" + worker(), "f.yaml:1:9: must be from 1s to 87600h, or never: 1ms"},
	"number spelling":    {worker("input: {a: 0x1F}"), "f.yaml:8:16: a number is written as in JSON: 12, -0.5, 1e6; quote it if it is a string: 0x1F"},
	"infinity":           {worker("input: {a: .inf}"), "a value that JSON does not have: .inf"},
	"key of a number":    {worker("input: {1: a}"), "f.yaml:8:13: a key must be a string; quote it: 1"},
	"merge key":          {worker("input: &x {a: 1}", "retry: {<<: *x}"), "merge keys are not supported"},
	"unknown alias":      {worker("input: *x"), "no anchor of this name"},
	"tag":                {worker("input: !!binary aGk="), "tags other than !!str"},
	"deep":               {worker("input: " + strings.Repeat("[", 300) + strings.Repeat("]", 300)), "nested deeper than 200"},
	"deep in a line":     {worker("input:", strings.Repeat("- ", 300)+"a"), "nested deeper than 200"},
	"open expression":    {worker(`input: "abc ${ start.output"`), "f.yaml:8:17: an expression without its closing brace"},
	"expression":         {worker(`input: {a: "${ 1 + }"}`), "f.yaml:8:23: the expression ends too early: 1 +"},
	"folded expression":  {worker("input: >", "  ${ gone.output }"), "f.yaml:8:12: unknown name gone: gone.output"},
	"itself":             {worker("input: ${ w.output }"), "f.yaml:8:15: w is not an ancestor of w: w.output"},
	"field":              {worker("input: ${ start.outptu }"), "an activity has no outptu"},
	"hook's field":       {worker("input: ${ start.by }"), "start has no by: it is no hook"},
	"job's field":        {worker("input: ${ job.key }"), "job has no key; it has id"},
	"item":               {worker("input: ${ item.a }"), "f.yaml:8:15: item is known in the input of a worker with each, nowhere else: item"},
	"output":             {"output: ${ gone.output }\n" + worker(), "f.yaml:1:12: unknown name gone"},
	"schema":             {"input: {type: objekt, properties: {a: {minimum: x}}}\n" + worker(), "f.yaml:1:15: not a JSON Schema: "},
	"schema elsewhere":   {"input: {$ref: 'https://example.com/x.json'}\n" + worker(), "is not fetched"},
	"schema type":        {"input: text\n" + worker(), "f.yaml:1:8: a JSON Schema is a mapping or a boolean, this is a string: text"},
	"from nowhere":       {transitions("  start: [w, v]\n  gone: [w]\n"), "f.yaml:9:3: there is no activity of this name: gone"},
	"no list":            {transitions("  start: w\n"), "f.yaml:8:10: must be a list of transitions, this is a string: w"},
	"strange transition": {transitions("  start: [[w], v]\n"), "a transition is a name or a mapping, this is a list"},
	"no target":          {transitions("  start: [w, {on: error}]\n"), "f.yaml:8:14: the key to is missing"},
	"transition key":     {transitions("  start: [w, {to: v, if: x}]\n"), "f.yaml:8:22: unknown key; a transition takes to, on, when: if"},
	"into the trigger":   {transitions("  start: [w]\n  w: [v]\n  v: [start]\n"), "f.yaml:10:7: a trigger has no incoming transition: start"},
	"error of a trigger": {transitions("  start: [w, {to: v, on: error}]\n"), "a trigger has no error"},
	"self":               {transitions("  start: [w, v]\n  w: [w]\n"), "the transitions make a cycle, w → w;"},
	"condition type":     {transitions("  start: [w, {to: v, when: '1 + 1'}]\n"), "f.yaml:8:29: a condition must be true or false: 1 + 1"},
	"condition's scope":  {transitions("  start: [w, {to: v, when: w.code == 1}]\n"), "f.yaml:8:28: w is not an ancestor of start: w.code"},
	"condition no text":  {transitions("  start: [w, {to: v, when: true}]\n"), "must be a string, this is a boolean: true"},
	"crowded join":       {transitions("  start: [" + strings.Repeat("w, ", 99) + "w, v]\n"), "f.yaml:8:308: more than 99 transitions lead to w; let some of them meet before it: w"},
	"join of none":       {worker("join: all"), "f.yaml:8:11: only one transition leads to w: nothing meets there: all"},
	"join":               {worker("join: most"), "f.yaml:8:11: must be one of all, any: most"},
	"schedule's input":   {"schedule: {cron: 0 2 * * *, input: {n: x}}\ninput: {properties: {n: {type: number}}}\n" + worker(), "f.yaml:1:36: the input does not fit flow a: $.n: got string, want number"},
	"schedule's cron":    {"schedule: {zone: UTC}\n" + worker(), "f.yaml:1:11: the key cron is missing"},
	"schedule":           {"schedule: 0 2 * * *\n" + worker(), "f.yaml:1:11: must be a mapping, this is a string: 0 2 * * *"},
	"a word alone":       {worker("input: ${ job }"), "f.yaml:8:15: job stands for no value by itself; name one of its fields: job"},
	"long text is cut":   {worker("class: " + strings.Repeat("x", 100)), "guarded: " + strings.Repeat("x", 80) + "…"},
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range faultCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := flow.Parse("f.yaml", []byte(c.src))
			require.Nil(t, f)
			var faults flow.Faults
			require.ErrorAs(t, err, &faults)
			require.Contains(t, err.Error(), c.want)
		})
	}
}

func TestFaultsOfJSON(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ src, want string }{
		"syntax":    {"{\n  \"flow\": \"é\" x}", `f.json:2:15: not JSON: 'x' where ',' or '}' should be`},
		"string":    {`{"flow": "\ud800"}`, "f.json:1:11: not JSON: half a surrogate pair"},
		"number":    {`{"flow": 01}`, "f.json:1:10: not JSON: a number with a zero in front"},
		"end":       {`{"flow": `, "not JSON: the text ends"},
		"trailing":  {`{} {}`, "f.json:1:4: not JSON: more text behind the value"},
		"yaml":      {`flow: a`, "not JSON"},
		"deep":      {strings.Repeat("[", 300), "f.json:1:201: not JSON: nested deeper than 200"},
		"duplicate": {"{\"flow\": \"a\",\n \"flow\": \"b\"}", "f.json:2:2: the key comes twice, first in line 1: flow"},
		"place":     {"{\"version\": \"1\", \"activities\": {\"s\": {\"type\": \"trigger\"}},\n\"output\": {\"é\": \"ü ${ a.output }\"}, \"flow\": \"x\"}", "f.json:2:23: unknown name a: a.output"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := flow.Parse("f.json", []byte(c.src))
			require.ErrorContains(t, err, c.want)
		})
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
		"flow: must be a name: [a-z][a-z0-9_]*: Order", "input: not canonical JSON: ", "output: json: unsupported type: func()",
		"activities.start: the key comes twice: start", "activities.w: json: unsupported type: chan int",
		"activities.w.timeout: must be from 1ms to 8760h: -1s", "activities.w.retry.attempts: must be an integer from 1 to 1000: -1",
		"transitions.start[2].when: ", "schedule.input: not canonical JSON: ", "schedule.cron: refused schedule: ",
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
