package work

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

func TestReplaySaysWhereAFunctionStands(t *testing.T) {
	t.Parallel()
	w := play(t, steps(call("a"), rest("rest"), call("b")))
	unrecorded := func(name, position string, started bool) {
		t.Helper()
		want := &Replayed{
			End:        ReplayUnrecorded,
			Unrecorded: &effect.Unrecorded{Call: `effect "` + name + `"`, Position: position, Started: started},
		}
		require.Equal(t, want, w.replay())
	}
	unrecorded("a", "1", false)
	w.crash = &crash{left: 2}
	require.Nil(t, w.run())
	unrecorded("a", "1", true)
	w.next()
	r := w.replay()
	require.Equal(t, ReplaySuspended, r.End)
	require.Equal(t, "rest", r.Waits[0].Name)
	w.wake(journal.PauseSleep, "rest", "")
	unrecorded("b", "3", false)
	w.next()
	r = w.replay()
	require.Equal(t, ReplayReturned, r.End)
	require.Equal(t, `0`, string(r.Response.Output))
	require.Equal(t, []string{"a", "a", "b"}, w.outer.names, "nothing is called by replays")
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

	w = play(t, steps(undoable("x"), undoable("y"), fails(workers.Fail(409, "no"))))
	w.crash = &crash{left: 4} // before the first compensation is recorded as run
	require.Nil(t, w.run())
	r = w.replay()
	require.Equal(t, []any{ReplayUnrecorded, true}, []any{r.End, r.Undoing})
	require.Equal(t, &effect.Unrecorded{Call: `effect "undo:y"`, Position: "2", Started: true}, r.Unrecorded)
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
	w.reg = workers.New()
	workers.Handle(w.reg, "fn", func(ctx context.Context, in int) (int, error) {
		a, err := effects.Do(ctx, "a", func(context.Context) (int, error) { return in + 1, nil })
		if err != nil {
			return 0, err
		}
		return effects.Do(ctx, "b", func(context.Context) (int, error) { return a + 1, nil }, effects.Pure)
	})
	r := w.replay()
	require.Equal(t, &effect.Unrecorded{Call: `effect "a"`}, r.Unrecorded)

	for says, change := range map[string]func(c *wire.Request){
		"has no handler":                   func(c *wire.Request) { c.Topic = "x" },
		"compensations of another request": func(c *wire.Request) { c.Flow = flow.UndoName },
		journal.ErrMalformedID.Error():     func(c *wire.Request) { c.Job = "x" },
	} {
		q := w.record()
		change(&q.Request)
		_, err := Replay(t.Context(), w.reg, q)
		require.ErrorContains(t, err, says)
	}
}
