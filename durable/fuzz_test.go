package durable

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// FuzzHistory: the positions of recorded calls, whatever they are, are stored once each,
// and a run without calls misses the first of them.
func FuzzHistory(f *testing.F) {
	f.Add("1", "2.0.1", "2", "undo")
	f.Add("", "x", "1.", "-1.9223372036854775808.1")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		positions := []string{a, b, c, d}
		var rows []store.EffectRow
		for i, p := range positions {
			rows = append(rows, store.EffectRow{Key: journal.Digest{byte(i + 1)}, Name: "n", Class: string(effects.Pure), State: store.EffectCompleted, Position: p})
		}
		h := newHistory(rows, []store.Pause{{PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "nap", Position: d}}})
		for _, r := range h.order {
			require.Same(t, r, h.record(r.position))
		}
		seen := map[string]bool{}
		for _, r := range h.order {
			require.False(t, seen[r.position])
			seen[r.position] = true
		}
		for _, p := range positions {
			require.Equal(t, p != "" && p != journal.UndoPosition, seen[p], "%q", p)
		}
	})
}

// FuzzRecordedInt: a recorded number is read or refused, with the call's name.
func FuzzRecordedInt(f *testing.F) {
	for _, seed := range []string{"1", "-0", "1e3", "1.5", "null", "9223372036854775808", `"1"`, ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := &call{what: `effect "change"`}
		v, err := c.number(raw, nil)
		if err != nil {
			require.Zero(t, v)
			require.ErrorContains(t, err, "change")
			return
		}
		n, err := c.number(strconv.AppendInt(nil, int64(v), 10), nil)
		require.NoError(t, err)
		require.Equal(t, v, n)
	})
}
