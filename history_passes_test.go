package quipu_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/workers"
)

const countdown = `
flow: countdown
version: "1"
activities:
  start: {type: trigger}
  check: {type: hook, input: {left: 3}}
  look: {type: worker, topic: look, input: {left: "${ check.output.left }"}}
  again: {type: cycle, to: check, input: {left: "${ check.output.left - 1 }"}}
transitions:
  start: [check]
  check: [look]
  look: [{to: again, when: "check.output.left > 1"}]
`

// The history shows the input of each pass, which reads what its pivot had in that pass.
func TestHistoryOfPasses(t *testing.T) {
	t.Parallel()
	reg := workers.New()
	workers.HandleRaw(reg, "look", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil })
	s := newSpaceOf(t, reg, countdown)
	job := s.begin("countdown", "c-1", map[string]any{})
	s.output(job, `null`)
	events, err := s.History(t.Context(), job)
	require.NoError(t, err)
	var inputs []string
	for i := range events {
		if e := &events[i]; e.Activity == "look" && e.Input != nil {
			require.Empty(t, e.Input.Missing)
			inputs = append(inputs, string(e.Input.JSON))
		}
	}
	require.Equal(t, []string{`{"left":3}`, `{"left":2}`, `{"left":1}`}, inputs)
}
