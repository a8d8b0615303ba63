package effects_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
)

func TestE14OutsideAJobDoIsTheCall(t *testing.T) {
	t.Parallel()
	var calls int
	fn := func(ctx context.Context) (int, error) {
		calls++
		require.Empty(t, effects.Key(ctx))
		return 7, nil
	}
	for range 2 {
		got, err := effects.Do(t.Context(), "charge", fn)
		require.NoError(t, err)
		require.Equal(t, 7, got)
	}
	require.Equal(t, 2, calls)
	got, err := effects.DoTx(t.Context(), "move", func(ctx context.Context, tx any) (int, error) {
		require.Nil(t, tx)
		return fn(ctx)
	})
	require.NoError(t, err)
	require.Equal(t, 7, got)
}

func TestE5NotDoneMarksAnError(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	require.NoError(t, effects.NotDone(nil))
	require.ErrorIs(t, effects.NotDone(away), away)
	require.True(t, effects.IsNotDone(effects.NotDone(away)))
	require.True(t, effects.IsNotDone(&effects.FailedError{}))
	require.False(t, effects.IsNotDone(away))
}
