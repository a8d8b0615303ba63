package workers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

func TestReplaySaysWhereAFunctionStands(t *testing.T) {
	t.Parallel()
	var o outside
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		a, err := do(ctx, &o, "a", 1)
		if err != nil {
			return 0, err
		}
		if err := Sleep(ctx, "rest", time.Second); err != nil {
			return 0, err
		}
		return do(ctx, &o, "b", a+1)
	}, `1`)
	at := func(r *Replayed) []any { return []any{r.End, r.Unrecorded, r.Err} }
	require.Equal(t, []any{ReplayUnrecorded, &effects.Unrecorded{Call: `effect "a"`, Position: "1"}, nil}, at(w.replay()))
	w.crash = &crash{left: 2}
	require.Nil(t, w.run())
	require.Equal(t, []any{ReplayUnrecorded, &effects.Unrecorded{Call: `effect "a"`, Position: "1", Started: true}, nil}, at(w.replay()))
	w.next()
	r := w.replay()
	require.Equal(t, ReplaySuspended, r.End)
	require.Equal(t, "rest", r.Waits[0].Name)
	w.wake(journal.PauseSleep, "rest", "")
	require.Equal(t, []any{ReplayUnrecorded, &effects.Unrecorded{Call: `effect "b"`, Position: "3"}, nil}, at(w.replay()))
	w.next()
	r = w.replay()
	require.Equal(t, ReplayReturned, r.End)
	require.Equal(t, `2`, string(r.Response.Output))
	require.Equal(t, []string{"a", "a", "b"}, o.names, "nothing is called by replays")
}

func TestReplayOfFailures(t *testing.T) {
	t.Parallel()
	failed := errors.New("no")
	w := play(t, steps(call("a"), fails(failed)))
	w.next()
	r := w.replay()
	require.Equal(t, ReplayFailed, r.End)
	require.ErrorIs(t, r.Err, failed)
	require.Equal(t, journal.ResponseFailedAttempt, r.Response.Kind)

	w = play(t, steps(undoable("x"), undoable("y"), fails(Fail(409, "no"))))
	w.crash = &crash{left: 4} // before the first compensation is recorded as run
	require.Nil(t, w.run())
	r = w.replay()
	require.Equal(t, []any{ReplayUnrecorded, true}, []any{r.End, r.Undoing})
	require.Equal(t, &effects.Unrecorded{Call: `effect "undo:y"`, Position: "2", Started: true}, r.Unrecorded)
	w.next()
	r = w.replay()
	require.Equal(t, []any{ReplayFailed, true, true}, []any{r.End, r.Undoing, r.Response.Undone})
}

// In a replay, a First with a branch that stopped at the end of the record does not
// decide for another branch.
func TestReplayDecidesNothing(t *testing.T) {
	t.Parallel()
	w := play(t, race(call("a"), nothing))
	r := w.replay()
	require.Equal(t, ReplayUnrecorded, r.End)
	require.Equal(t, "1.0.1", r.Unrecorded.Position)
	require.Empty(t, w.recorded())
}

func TestReplayOfOtherHandlers(t *testing.T) {
	t.Parallel()
	w := play(t, nothing)
	w.reg = New()
	Handle(w.reg, "fn", func(ctx context.Context, in int) (int, error) {
		a, err := effects.Do(ctx, "a", func(context.Context) (int, error) { return in + 1, nil })
		if err != nil {
			return 0, err
		}
		return effects.Do(ctx, "b", func(context.Context) (int, error) { return a + 1, nil }, effects.Pure)
	})
	r := w.replay()
	require.Equal(t, &effects.Unrecorded{Call: `effect "a"`}, r.Unrecorded)

	q := w.record()
	q.Call.Topic = "x"
	_, err := Replay(t.Context(), w.reg, q)
	require.ErrorContains(t, err, "has no handler")
	q = w.record()
	q.Call.Flow = flow.UndoName
	_, err = Replay(t.Context(), w.reg, q)
	require.ErrorContains(t, err, "compensations of another request")
	q = w.record()
	q.Call.Job = "x"
	_, err = Replay(t.Context(), w.reg, q)
	require.ErrorIs(t, err, journal.ErrMalformedID)
}
