package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// numbers is a list that grows to four times its size in its canonical form, in which
// 1e20 is 100000000000000000000.
func numbers(size int) []byte {
	return []byte("[" + strings.Repeat("1e20,", size/5-1) + "1e20]")
}

// E6: the limit is for the recorded canonical form, so that an entry keeps its own limit.
func TestE6LimitsAreOfTheCanonicalForm(t *testing.T) {
	t.Parallel()
	large := numbers(wire.MaxResult)
	require.LessOrEqual(t, len(large), wire.MaxResult)
	_, err := (&wire.Response{Kind: journal.ResponseTerminal, Code: 200, Output: large}).Journal()
	require.ErrorIs(t, err, wire.ErrMalformed)
	require.ErrorContains(t, err, fmt.Sprint(wire.MaxResult))
	_, err = (&wire.Response{
		Kind: journal.ResponseTerminal, Code: 402, Error: &wire.Failure{Class: "x", Data: large},
	}).Journal()
	require.ErrorIs(t, err, wire.ErrMalformed)
	small := numbers(wire.MaxResult / 5)
	r, err := (&wire.Response{Kind: journal.ResponseTerminal, Code: 200, Output: small}).Journal()
	require.NoError(t, err)
	require.LessOrEqual(t, len(r.Output), wire.MaxResult)
}

// E12: the limit of a suspension is for all its pauses together.
func TestE12SuspensionLimitIsOfAllPauses(t *testing.T) {
	t.Parallel()
	suspend := func(n, size int) error {
		var pauses []wire.Pause
		for i := range n {
			pauses = append(pauses, wire.Pause{
				Kind: journal.PauseChild, Name: fmt.Sprint(i), Position: fmt.Sprint(i + 1), Flow: "f", Key: "k",
				Input: numbers(size),
			})
		}
		_, err := wire.SuspendedUntil(pauses).Journal()
		return err
	}
	require.ErrorIs(t, suspend(1, wire.MaxPauseBytes), wire.ErrMalformed)
	require.ErrorIs(t, suspend(40, wire.MaxPauseBytes/40), wire.ErrMalformed)
	require.ErrorContains(t, suspend(40, wire.MaxPauseBytes/40), fmt.Sprint(wire.MaxPauseBytes))
	require.NoError(t, suspend(4, wire.MaxPauseBytes/40))
}
