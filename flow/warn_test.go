package flow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

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

// A warning has a path, as a fault has.
func TestWarningsHavePaths(t *testing.T) {
	t.Parallel()
	f, err := flow.Parse("f.yaml", []byte(worker("class: guarded")))
	require.NoError(t, err)
	require.Equal(t, "activities.w.class", f.Warnings()[0].Path)
}
