package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// W5: of a job that has just completed here a wait knows without a question, each with an output of
// its own. What is old, large or did not complete, and what too many have followed, is asked.
func TestW5WaitsForWhatHasJustEnded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHall(t)
		over := func(id journal.JobID, o store.Outcome) {
			o.Ended = true
			h.Over([]engine.Ended{{Job: id, How: o}})
		}
		asks := func(id journal.JobID) bool {
			t.Helper()
			_, before := h.asked.counts()
			w := h.wait(t.Context(), id)
			ended := w.over()
			_, after := h.asked.counts()
			require.NotEqual(t, ended, after > before, "a wait ends at once, or asks")
			if !ended {
				require.NoError(t, w.err)
			}
			return !ended
		}
		completed := store.Outcome{State: journal.JobCompleted, Code: 200, Output: []byte(`"done"`)}

		first := h.start("first")
		over(first, completed)
		for range 2 {
			o, err := h.Wait(t.Context(), first, false)
			require.NoError(t, err)
			require.Equal(t, `"done"`, string(o.Output))
			o.Output[1] = 'D'
		}
		require.False(t, asks(first))
		time.Sleep(4 * time.Second)
		require.False(t, asks(first))
		time.Sleep(2 * time.Second)
		require.True(t, asks(first), "it was long ago")

		large := completed
		large.Output = []byte(`"` + strings.Repeat("x", 5000) + `"`)
		for name, o := range map[string]store.Outcome{"large": large, "failed": {State: journal.JobFailed, Code: 500}} {
			id := h.start(name)
			over(id, o)
			require.True(t, asks(id), name)
		}

		second := h.start("second")
		over(second, completed)
		for n := range 1024 {
			require.False(t, asks(second), n)
			over(journal.DeriveJob("test", fmt.Sprint(n), 1), completed)
		}
		require.True(t, asks(second), "too many have followed")
	})
}
