package work

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// E12: a wait for what no signal can be, or for a time that no clock can tell, is an error at once.
func TestE12WaitsThatCannotEndAreRefused(t *testing.T) {
	t.Parallel()
	await := func(topic string, options ...workers.AwaitOption) code {
		return func(ctx context.Context, _ *outside) error {
			_, err := workers.Await[int](ctx, topic, 0, options...)
			return err
		}
	}
	for says, c := range map[string]code{
		`topic "Bad Topic": it is parts of a-z, 0-9, _ and - joined by dots`: await("Bad Topic"),
		`topic "": it is parts`: await(""),
		`topic "a..b"`:          await("a..b", workers.As("x")),
		`it has no key`:         await("paid", workers.SignalKey("")),
		"its time of 9223372036854776 µs is not within": func(ctx context.Context, _ *outside) error { return workers.Sleep(ctx, "x", math.MaxInt64) },
	} {
		r := play(t, c).next()
		require.Equal(t, journal.ResponseFailedAttempt, r.Kind, says)
		require.Contains(t, r.Error.Message, says)
		require.Contains(t, r.Error.Message, effects.ErrUsage.Error())
	}
	_, err := workers.Await[int](t.Context(), "Bad Topic", 0)
	require.ErrorIs(t, err, effects.ErrUsage, "outside a job, too")
}
