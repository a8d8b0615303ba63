package api_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// Of the past a job has what had happened by then, effects too; and one whose definition is lost is shown
// and explained all the same, as far as that goes.
func TestInspectOfWhatIsPastOrLost(t *testing.T) {
	t.Parallel()
	reg := workers.New()
	workers.Handle(reg, "charge", func(ctx context.Context, _ any) (string, error) {
		return effects.Do(ctx, "charge", func(context.Context) (string, error) { return "r-1", nil }, effects.Idempotent)
	})
	s := newSpaceOf(t, reg, `
flow: pay
version: "1"
activities:
  start: {type: trigger}
  charge: {type: worker, topic: charge}
transitions: {start: [charge]}
`)
	job := s.begin("pay", "p-1", map[string]any{})
	_, err := s.Wait(t.Context(), job)
	require.NoError(t, err)

	now, err := s.Inspect(t.Context(), job, view.Want{Effects: true})
	require.NoError(t, err)
	require.Len(t, now.Effects, 1)
	for _, want := range []view.Want{{At: 1, Effects: true}, {At: 1, Tree: true}, {At: 1, Journal: true}} {
		then, err := s.Inspect(t.Context(), job, want)
		require.NoError(t, err)
		require.Empty(t, then.Effects, "%+v", want)
	}

	_, err = s.db().Exec(t.Context(), "DELETE FROM quipu_default.flows WHERE name = 'pay'")
	require.NoError(t, err)
	left, err := s.Inspect(t.Context(), job, view.Want{Graph: true, Reasons: true})
	require.NoError(t, err)
	require.NotEmpty(t, left.Reasons)
	require.Empty(t, left.Graph)
	_, err = s.History(t.Context(), job)
	require.ErrorIs(t, err, quipu.ErrNotFound, "its inputs cannot be told without it")
}
