package flow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

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

// An output that an error path or a condition may leave out is warned about, if the
// flow's output reads into it without a test.
func TestWarningsOfOutputs(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		`"${ charge.output.id }"`:                                   "f.yaml:3:13: charge may end with an error that a transition takes, and has no output then: test charge.code == 200 first: charge.output.id",
		`{a: 1, b: "no ${ ship.output[0] }"}`:                       "f.yaml:3:26: ship may not run, and its output is null then: test ship.skipped first: ship.output[0]",
		`"${ sorry.output.text }"`:                                  "f.yaml:3:13: sorry may not run, and its output is null then: test sorry.skipped first: sorry.output.text",
		`"${ charge.output }"`:                                      "",
		`"${ always.output.id }"`:                                   "",
		`"${ start.output.id }"`:                                    "",
		`"${ charge.code == 200 ? charge.output.id : null }"`:       "",
		`"${ ship.skipped ? null : ship.output.id }"`:               "",
		`"${ has(charge.output.id) ? charge.output.id : 'none' }"`:  "",
		`"${ charge.error == null ? charge.output.id : \"none\" }"`: "",
	} {
		f, err := flow.Parse("f.yaml", []byte(strings.Replace(risky, "OUTPUT", output, 1)))
		require.NoError(t, err, output)
		said := ""
		if len(f.Warnings()) > 0 {
			said = f.Warnings().Error()
		}
		require.Equal(t, want, said, output)
		stored, err := flow.FromCanonical(f.Canonical())
		require.NoError(t, err)
		require.Len(t, stored.Warnings(), len(f.Warnings()))
	}
}

// E11: a failed output names the activity without an output, and why it has none.
func TestOutputSaysWhatIsBehindIt(t *testing.T) {
	t.Parallel()
	parse := func(output string) *flow.Flow {
		f, err := flow.Parse("f.yaml", []byte(strings.Replace(risky, "OUTPUT", output, 1)))
		require.NoError(t, err)
		return f
	}
	declined := results{
		"start":  ran("{}"),
		"charge": {Code: 402, Error: []byte(`{"code":402,"message":"declined"}`), Ran: true},
		"ship":   {Skipped: true, Ran: true},
	}
	_, err := parse(`"${ charge.output.id }"`).Output(declined)
	require.EqualError(t, err, `output: ${ charge.output.id }: no such key: id; charge ended with an error ({"code":402,"message":"declined"}), `+
		`so it has no output: test charge.code == 200 first`)
	_, err = parse(`{a: "${ charge.code }", b: "${ ship.output.id }"}`).Output(declined)
	require.ErrorContains(t, err, "; ship did not run, so its output is null: test ship.skipped first")
	_, err = parse(`"${ start.output.id }"`).Output(declined)
	require.EqualError(t, err, "output: ${ start.output.id }: no such key: id")
}

// E3: a class in a flow changes nothing, so its author is told where to put it.
func TestWarningsOfClasses(t *testing.T) {
	t.Parallel()
	const source = "flow: f\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n  pay: {type: worker, topic: TOPIC}\ntransitions: {start: [pay]}\n"
	for topic, want := range map[string]string{
		"http":                     "",
		"http, class: guarded":     "f.yaml:5:43: the class has no effect: the handler http names its effect idempotent itself",
		"payments, class: guarded": "f.yaml:5:47: the class has no effect: the handler decides",
	} {
		f, err := flow.Parse("f.yaml", []byte(strings.Replace(source, "TOPIC", topic, 1)))
		require.NoError(t, err)
		if want == "" {
			require.Empty(t, f.Warnings())
			continue
		}
		require.Len(t, f.Warnings(), 1)
		require.ErrorContains(t, f.Warnings(), want)
		require.Equal(t, "activities.pay.class", f.Warnings()[0].Path)
		stored, err := flow.FromCanonical(f.Canonical())
		require.NoError(t, err)
		require.Len(t, stored.Warnings(), 1)
	}
}

// A text that looks like an expression without its ${ } is warned about, because it is
// the same for every job.
func TestWarningsOfTextsLikeExpressions(t *testing.T) {
	t.Parallel()
	const source = `flow: f
version: "1"
activities:
  start: {type: trigger}
  ACTIVITY
transitions: {start: [next]}
`
	const constant = "a text that is the same for every job, though it looks like an expression: write "
	for activity, want := range map[string]string{
		`next: {type: hook, signal: s, key: start.output.id}`:                   "f.yaml:5:38: " + constant + "${ start.output.id }: start.output.id",
		`next: {type: hook, signal: s, key: "{{ start.output.a }}"}`:            "f.yaml:5:38: " + constant + "${ start.output.a }: {{ start.output.a }}",
		`next: {type: hook, signal: s, key: "o-{{start.output.a}}-{{x}}"}`:      "f.yaml:5:38: " + constant + "o-${ start.output.a }-${ x }: o-{{start.output.a}}-{{x}}",
		`next: {type: signal, topic: s, key: "$ {start.output.a}"}`:             "f.yaml:5:39: " + constant + "${ start.output.a }: $ {start.output.a}",
		`next: {type: signal, topic: s, key: k, payload: [start.code]}`:         "f.yaml:5:52: " + constant + "${ start.code }: start.code",
		`next: {type: await, flow: g, id: "start.error.code", await: false}`:    "f.yaml:5:36: " + constant + "${ start.error.code }: start.error.code",
		`next: {type: interrupt, target: "{{ start.output.id"}`:                 "f.yaml:5:35: " + constant + "${ start.output.id }: {{ start.output.id",
		`next: {type: worker, topic: w, input: {a: start.output.id}}`:           "f.yaml:5:45: " + constant + "${ start.output.id }: start.output.id",
		`next: {type: hook, signal: s, key: "start.output.a + 'x'"}`:            "f.yaml:5:38: " + constant + "${ start.output.a + 'x' }: start.output.a + 'x'",
		`next: {type: hook, signal: s, key: "$${start.output.id}"}`:             "",
		`next: {type: worker, topic: w, output: {key: "{{name}}"}}`:             "",
		`next: {type: hook, signal: s, key: news}`:                              "",
		`next: {type: hook, signal: s, key: other.output.id}`:                   "",
		`next: {type: hook, signal: s, key: start.outputs}`:                     "",
		`next: {type: hook, signal: s, key: "${ start.output.id }"}`:            "",
		`next: {type: worker, topic: w, input: "Dear {{name}}"}`:                "",
		`next: {type: worker, topic: w, input: "see start.output.id"}`:          "",
		`next: {type: worker, topic: w, input: "start.output.id holds the id"}`: "",
	} {
		f, err := flow.Parse("f.yaml", []byte(strings.Replace(source, "ACTIVITY", activity, 1)))
		require.NoError(t, err, activity)
		if want == "" {
			require.Empty(t, f.Warnings(), activity)
			continue
		}
		require.Len(t, f.Warnings(), 1, activity)
		require.EqualError(t, f.Warnings(), want, activity)
		stored, err := flow.FromCanonical(f.Canonical())
		require.NoError(t, err)
		require.Len(t, stored.Warnings(), 1)
	}
}
