package e2e

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
	"github.com/quipu-journal/quipu/internal/testkit/world"
	"github.com/quipu-journal/quipu/workers"
)

func init() {
	moreHandlers = append(moreHandlers, func(reg *workers.Registry, _ string) {
		workers.Handle(reg, "kills", func(context.Context, order) (order, error) {
			os.Exit(3)
			return order{}, nil
		}, workers.Early())
	})
}

// L4, E9: an early handler that exits, in the first step of a start that the caller repeats. The first
// processes mostly die before anything is recorded, so nothing counts. Once the session of one is dead
// the topic is early nowhere: the start is recorded, and its runs count until the request is held.
func TestL4AnEarlyHandlerThatExitsIsCounted(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	rt, db := e.client(), e.tables()
	_, err := db.Exec(t.Context(), "SET search_path = quipu_"+e.Space)
	require.NoError(t, err)
	c := e.child(world.NewOutside(t))
	c.Starts = e.Deploy(rt, oneStep("kills")).Name()
	uncounted, counted := 0, 0
	for held := false; !held; {
		p := startChild(t, c)
		e.eventually("the end of the process, or a dead letter", func() bool {
			letters, err := rt.Operator().DeadLetters(t.Context(), quipu.DeadLetterFilter{Reason: "runs"})
			require.NoError(t, err)
			held = len(letters) > 0
			select {
			case <-p.Gone:
				return true
			default:
				return held
			}
		})
		runs := 0
		err := db.QueryRow(t.Context(), "SELECT runs FROM dispatches WHERE kind = 'request'").Scan(&runs)
		switch {
		case held:
			p.Kill()
		case errors.Is(err, pgx.ErrNoRows):
			uncounted++
			require.Less(t, uncounted, 30, "nobody finds the sessions of the processes dead")
			continue
		default:
			counted++
		}
		require.NoError(t, err)
		t.Logf("run %d, after %d that do not count", runs, uncounted)
		if counted == 1 && !soak.On() { // twenty processes take a while
			_, err := db.Exec(t.Context(), "UPDATE dispatches SET runs = $1, rev = rev + 1 WHERE kind = 'request'", store.MaxRuns-1)
			require.NoError(t, err)
		}
	}
	require.Positive(t, counted)
}
