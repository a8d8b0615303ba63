package durable

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// E15: a pause that is remembered is asked for once in a run, as any other.
func TestE15ARememberedPauseIsNotAskedForTwice(t *testing.T) {
	b := newBench(t)
	fn := func(ctx context.Context) ([]byte, error) {
		if err := sleep(ctx, "x"); err != nil {
			return nil, err
		}
		return nil, sleep(ctx, "x")
	}
	require.True(t, b.run(fn).Suspended)
	b.wake("x")
	var twice *effect.DuplicateError
	require.ErrorAs(t, b.run(fn).Err, &twice)
	require.Equal(t, "x", twice.First)
}

// E15: a pause that is recorded further on is a difference where it is asked for, be
// it looked for by itself or, in a run with many new ones, in the map of all.
func TestE15APauseThatHasMovedIsADifference(t *testing.T) {
	for _, before := range []int{0, 2 * manyLooks} {
		t.Run(fmt.Sprint(before, " new ones before"), func(t *testing.T) {
			b := newBench(t)
			x := func(ctx context.Context) { _ = sleep(ctx, "x") }
			b.run(func(ctx context.Context) ([]byte, error) { return nil, All(ctx, []func(context.Context){x}) })
			b.wake("x")
			branches := []func(context.Context){func(context.Context) {}}
			for i := range before {
				branches = append(branches, func(ctx context.Context) { _ = sleep(ctx, fmt.Sprint("new ", i)) })
			}
			f := b.deliver()
			f.Run(t.Context(), func(ctx context.Context) ([]byte, error) { return nil, All(ctx, append(branches, x)) })
			var differs *effects.NondeterminismError
			require.ErrorAs(t, f.Session().Verdict(), &differs)
			require.Equal(t, fmt.Sprintf("1.%d.1", before+1), differs.Position)
			require.Equal(t, "1.0.1", differs.RecordedAt)
		})
	}
}

// Calls that are not the function's own branch's have their records too, and so have
// those whose places are numbers that no call has.
func TestRecordsAreFoundByTheirPositions(t *testing.T) {
	t.Parallel()
	for position, own := range map[string]bool{
		"1": true, "10": true, fmt.Sprint(maxNumber): true,
		"0": false, "01": false, "-1": false, "1.0.1": false, "x": false, fmt.Sprint(maxNumber + 1): false, "99999999999999999999": false,
	} {
		h := newHistory(nil, nil)
		r := &record{}
		h.place(r, position)
		require.Same(t, r, h.record(position), position)
		require.Equal(t, own, len(h.main) > 0, position)
		require.Equal(t, position, r.position)
	}
}

// FuzzHistory: the positions of recorded calls, whatever they are, are stored once each,
// and a run without calls misses the first of them.
func FuzzHistory(f *testing.F) {
	f.Add("1", "2.0.1", "2", "undo")
	f.Add("", "x", "1.", "-1.9223372036854775808.1")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		positions := []string{a, b, c, d}
		var rows []store.EffectRow
		for i, p := range positions {
			rows = append(rows, store.EffectRow{
				Key: journal.Digest{byte(i + 1)}, Name: "n", Class: string(effects.Pure), State: store.EffectCompleted,
				Position: p,
			})
		}
		h := newHistory(rows,
			[]store.Pause{{PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "nap", Position: d}}})
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
