package workers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

// A name that a lost branch has used can be used again, in the run that decides and in
// its replays: a loop waits for the same signal each time.
func TestE15ANameOfALostBranchCanBeUsedAgain(t *testing.T) {
	t.Parallel()
	passes := func(ctx context.Context, _ int) (string, error) {
		for i := range 3 {
			who, text, err := First(ctx,
				func(ctx context.Context) (string, error) { return Await[string](ctx, "stop", 0) },
				func(ctx context.Context) (string, error) { return "", Sleep(ctx, fmt.Sprint("tick", i), time.Second) },
			)
			if err != nil || who == 0 {
				return fmt.Sprint(i, text), err
			}
		}
		return "never", Sleep(ctx, "end", time.Second)
	}
	for _, crashes := range []int{0, 1, 2} {
		w := newWorld(t, passes, `1`)
		require.Equal(t, []string{"signal stop at 1.0.1", "sleep tick0 at 1.1.1"}, waits(w.next()))
		w.wake(journal.PauseSleep, "tick0", "")
		if crashes > 0 {
			w.crash = &crash{left: 1, after: crashes > 1} // while the First is recorded
		}
		require.Equal(t, []string{"signal stop at 2.0.1", "sleep tick1 at 2.1.1"}, waits(w.next()))
		w.wake(journal.PauseSignal, "stop", `"x"`)
		require.Equal(t, "1x", result[string](t, w.next()))
		require.Equal(t, ReplayReturned, w.replay(true).End)
	}
}
