package api_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/workers"
)

const heard = `
flow: heard
version: "1"
activities:
  start: {type: trigger}
  feed: {type: hook, signal: feed.item, key: "${ job.id }", repeat: true}
  ask: {type: worker, topic: ask}
output: {said: "${ ask.output }"}
transitions: {start: [feed, ask]}
`

// O11: the journal says who sent the signal that a hook, a hook that repeats or a durable function
// took; the history of the job tells it. A signal without a name says nothing.
func TestO11SignalsSayWho(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	reg := workers.New()
	workers.HandleDurable(reg, "ask", func(ctx context.Context, _ any) (string, error) {
		return workers.Await[string](ctx, "ask.answered", 0)
	})
	s := newSpaceOf(t, reg, heard)
	job := s.begin("heard", "h1", map[string]any{})
	send := func(topic, key string, payload any, opts ...quipu.SignalOption) {
		s.told(topic, key, payload, opts...)
	}
	send("feed.item", "h1", 1, quipu.Code(202), quipu.Who("ann"))
	send("feed.item", "h1", 2, quipu.Code(202))
	send("feed.item", "h1", 3, quipu.Who("bob"))
	tx, err := s.db().Begin(ctx)
	require.NoError(t, err)
	_, err = s.SignalTx(ctx, tx, "ask.answered", "h1", "yes", quipu.Who("carl"))
	require.NoError(t, err)
	require.NoError(t, tx.Commit(ctx))
	s.output(job, `{"said": "yes"}`)

	var who []string
	for e, err := range s.Journal(ctx, job) {
		require.NoError(t, err)
		if r := e.Response; r != nil && !r.Signal.IsZero() {
			who = append(who, r.Who)
		}
	}
	require.ElementsMatch(t, []string{"ann", "", "bob", "carl"}, who)
	events, err := s.History(ctx, job)
	require.NoError(t, err)
	var told []string
	for _, ev := range events {
		told = append(told, ev.Text)
	}
	require.Subset(t, told, []string{ // the two branches in any order
		"signal 1 came, sent by ann", "signal 2 came", "the signal came, sent by bob", `signal "ask.answered" came, sent by carl`,
	}, "%q", told)
}

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
			inputs = append(inputs, string(e.Input.JSON))
		}
	}
	require.Equal(t, []string{`{"left":3}`, `{"left":2}`, `{"left":1}`}, inputs)
}
