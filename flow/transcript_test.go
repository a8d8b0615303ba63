package flow_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
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

// risky is a flow with an output whose activities may fail, or not run.
const risky = `flow: order
version: "1"
output: OUTPUT
activities:
  start:  {type: trigger}
  charge: {type: worker, topic: charge}
  sorry:  {type: worker, topic: sorry}
  ship:   {type: worker, topic: ship}
  always: {type: worker, topic: always}
transitions:
  start:  [always, charge]
  charge: [{to: ship, when: charge.output.ok}, {to: sorry, on: error}]
`

// TestTranscripts reads the files in testdata/transcripts.
//
// Commands that parse a flow, and expect its faults or its warnings: parse (the whole file), json
// (likewise) · rest (what is below name and version) · above (what is above a flow of a worker) ·
// worker (lines of its worker) · transitions (lines of them) · next (an activity behind the
// trigger) · output (that of risky).
//
// model shows a file of testdata, by activity: addresses follow the dominators (1.9, 1.10). same
// takes two texts of an activity behind a pivot, which must give the same flow: spelling a default
// out makes no difference; same last, of one that nothing follows.
//
// Commands that evaluate a key of an activity x, which is the first line, behind a trigger start
// and a hook h, and expect its value or its error: input, sleep, key, each, child, signal,
// interrupt, and element index, and map, which takes a signal. Each further line is a result: a
// name, and an output or fields of a Result.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		t.Parallel()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if text, ok := sourceOf(d); ok {
				return saidOf(t, cmp.Or(map[string]string{"json": "f.json"}[d.Cmd], "f.yaml"), text)
			}
			first, rest, _ := strings.Cut(d.Input, "\n")
			switch d.Cmd {
			case "model":
				return modelOf(readFlow(t, first))
			case "same":
				return same(t, d.HasArg("last"), first, rest)
			}
			var value string
			var x *flow.Activity
			var err error
			switch {
			case d.Cmd == "check":
				value, err = "fits", readFlow(t, d.CmdArgs[0].Key).CheckInput([]byte(d.Input), flow.NewBudget(nil))
			case d.Cmd == "result":
				f, failed := flow.Parse("f.yaml", []byte(strings.Replace(risky, "OUTPUT", first, 1)))
				require.NoError(t, failed)
				value, err = asText(f.Output(scopeOf(t, rest)))
			case d.HasArg("order.yaml"):
				x = mustActivity(t, readFlow(t, "order.yaml"), d.CmdArgs[1].Key)
				value, err = evaluated(t, d, x, scopeOf(t, d.Input))
			default:
				x = with(t, first)
				value, err = evaluated(t, d, x, scopeOf(t, rest))
			}
			return requireSaid(t, x, value, err) + "\n"
		})
	})
}

// requireSaid is a value, or its error, which says where it is from (E11).
func requireSaid(t *testing.T, x *flow.Activity, value string, err error) string {
	var failed *flow.EvalError
	var misfit *flow.InputError
	switch {
	case err == nil:
		return value
	case errors.As(err, &misfit):
		require.Equal(t, "order", misfit.Flow)
	default:
		require.ErrorAs(t, err, &failed)
		require.Equal(t, x != nil, failed.Activity != "")
		if x != nil {
			require.Equal(t, x.Name, failed.Activity)
		}
		require.Contains(t, err.Error(), failed.Expression)
		require.Contains(t, err.Error(), failed.Place)
	}
	return err.Error()
}

func asText(value []byte, err error) (string, error) { return string(value), err }

// sourceOf is the flow of a command that parses one.
func sourceOf(d *datadriven.TestData) (string, bool) {
	switch d.Cmd {
	case "parse", "json":
		return d.Input, true
	case "rest":
		return head + d.Input + "\n", true
	case "above":
		return d.Input + "\n" + worker(), true
	case "worker":
		return worker(strings.Split(d.Input, "\n")...), true
	case "transitions":
		return transitions("  " + strings.ReplaceAll(d.Input, "\n", "\n  ") + "\n"), true
	case "next":
		return "flow: f\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n  next: {" + d.Input + "}\ntransitions: {start: [next]}\n", true
	case "output":
		return strings.Replace(risky, "OUTPUT", d.Input, 1), true
	}
	return "", false
}

// saidOf is what is said of a source: its faults or its warnings. A stored flow has as many
// warnings.
func saidOf(t *testing.T, name, text string) string {
	f, err := flow.Parse(name, []byte(text))
	if err != nil {
		require.Nil(t, f)
		require.ErrorAs(t, err, new(flow.Faults))
		return err.Error() + "\n"
	}
	stored, err := flow.FromCanonical(f.Canonical())
	require.NoError(t, err)
	require.Len(t, stored.Warnings(), len(f.Warnings()))
	if len(f.Warnings()) == 0 {
		return "no warning\n"
	}
	return f.Warnings().Error() + "\n"
}

// same is the canonical form of two spellings of an activity x, and of a schedule.
func same(t *testing.T, last bool, short, long string) string {
	t.Helper()
	var forms [2]string
	for i, activity := range []string{short, long} {
		schedule := []string{"schedule: {cron: 0 2 * * *}\n", "schedule: {cron: 0 2 * * *, zone: UTC, catch_up: one, input: {}}\n"}[i]
		behind, down := "", ""
		if !last {
			behind, down = "  y: {type: worker, topic: b, input: '${ x.skipped }'}\n", ", x: [y], w: [y]"
		}
		f, err := flow.Parse("f.yaml", []byte(head+schedule+"activities:\n  start: {type: trigger}\n  pivot: {type: hook}\n  w: {type: worker, topic: a}\n  x: {"+
			activity+"}\n"+behind+"transitions: {start: [pivot], pivot: [x, w]"+down+"}\n"))
		require.NoError(t, err)
		forms[i] = string(f.Canonical())
	}
	require.Equal(t, forms[0], forms[1])
	return forms[0] + "\n"
}

// with is the activity x of a flow in which it comes after the trigger and a hook h, which is a
// pivot.
func with(t *testing.T, activity string) *flow.Activity {
	t.Helper()
	f, err := flow.Parse("f.yaml", []byte(head+"activities:\n  start: {type: trigger}\n  h: {type: hook}\n  x: {"+activity+"}\ntransitions: {start: [h], h: [x]}\n"))
	require.NoError(t, err)
	return mustActivity(t, f, "x")
}

// scopeOf reads results, each of a line.
func scopeOf(t *testing.T, lines string) results {
	scope := results{"start": ran("{}"), "h": ran("null")}
	for line := range strings.Lines(lines) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if text == "none" {
			delete(scope, name)
			continue
		}
		fields, found := strings.CutPrefix(text, "result ")
		if !found {
			scope[name] = ran(text)
			continue
		}
		var r struct {
			Output, Error json.RawMessage
			Code          int
			By            string
			Ran, Skipped  bool
		}
		require.NoError(t, json.Unmarshal([]byte(fields), &r))
		scope[name] = flow.Result{
			Output: r.Output, Error: r.Error, Code: r.Code, By: r.By, Ran: r.Ran, Skipped: r.Skipped,
		}
	}
	return scope
}

func evaluated(t *testing.T, d *datadriven.TestData, x *flow.Activity, s results) (string, error) {
	switch d.Cmd {
	case "input":
		return asText(x.Input(s))
	case "taken":
		at, err := strconv.Atoi(d.CmdArgs[2].Key)
		require.NoError(t, err)
		taken, err := x.Out[at].Taken(s)
		return strconv.FormatBool(taken), err
	case "sleep":
		value, err := x.Sleep(s)
		return value.String(), err
	case "key":
		return x.Key(s)
	case "each":
		list, err := x.Each(s)
		return fmt.Sprintf("%d: %q", len(list), list), err
	case "element":
		list, err := x.Each(s)
		require.NoError(t, err)
		at, err := strconv.Atoi(d.CmdArgs[0].Key)
		require.NoError(t, err)
		return asText(x.ElementInput(s, list[at], at))
	case "child":
		value, err := x.Child(s)
		return fmt.Sprintf("%+v", value), err
	case "signal":
		value, err := x.Signal(s)
		return fmt.Sprintf("key %s, payload %s, code %d", value.Key, value.Payload, value.Code), err
	case "interrupt":
		value, err := x.Interrupt(s)
		return fmt.Sprintf("%+v", value), err
	case "map":
		require.True(t, x.HasOutput())
		var signal []byte
		if r, ok := s["signal"]; ok {
			signal = r.Output
		}
		return asText(x.MapOutput(s, signal))
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return "", nil
}
