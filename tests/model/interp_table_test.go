package model

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// interpret reads one flow, or several apart by lines of dashes, of which the
// first is run.
func interpret(text string) *outcome {
	h := &host{flows: map[string]*def{}, limit: 1000}
	flows := strings.Split(text, "\n---\n")
	for _, text := range flows {
		d := parse(text)
		h.flows[d.name] = d
	}
	return h.run(parse(flows[0]).name, map[string]any{"v": 3, "list": []any{5, 6, 7}}, "job-1", 1)
}

const head = "flow: f\nversion: '1'\n"

// said is what the model says of a job and of each child; what it cannot know is {}.
func (o *outcome) said() string {
	s := fmt.Sprintf("%v early %t\noutput %s\nruns %s\nentries %s\n", o.ends, o.early, spell(o.output), spell(o.runs), spell(o.entries))
	if len(o.asked) > 0 {
		s += "asked " + spell(o.asked) + "\n"
	}
	if len(o.waits) > 0 {
		s += "waits " + spell(o.waits) + "\n"
	}
	for _, k := range o.kids {
		s += fmt.Sprintf("%s turn %d: %v runs %s\n", k.act, k.turn, k.ends, spell(k.runs))
	}
	return s
}

// The model is held to the rules by hand-made examples, and not to the code that it
// judges: testdata/reads.txt has flows, and behind => what becomes of a job.
func TestModelReads(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/reads.txt")
	require.NoError(t, err)
	for _, example := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		flows, want, found := strings.Cut(example, "\n=>\n")
		require.True(t, found, example)
		require.Equal(t, want+"\n", interpret(flows).said(), flows)
	}
}

// What runs beside the way to an any-join need not be decided when it runs.
func TestModelKnowsWhatIsDecided(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() {
		interpret(head + `
activities: {s: {type: trigger}, a: {type: hook}, b: {type: hook}, j: {type: hook, join: any, input: {a: "${ a.code }"}}}
transitions: {s: [a, b], a: [j], b: [j]}`)
	})
}
