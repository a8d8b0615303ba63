package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
)

// A list tells of runs that end with their process before anything else (E9), also while one lasts. One lost
// run may be an accident.
func TestNotesTellOfLostRuns(t *testing.T) {
	t.Parallel()
	note := func(lost int) Note {
		return noteOf([]store.Awaited{
			{What: store.WaitsTopic, Activity: "charge", Topic: "pay", Holder: "vm/7", N: 1, Lost: lost},
		}, map[string]bool{"pay": true})
	}
	require.Equal(t, Note{"charge: runs at vm/7", false}, note(1))
	require.Equal(t, Note{"charge: its runs end with their process: 2 so far", true}, note(2))
}

// A list tells of an effect that was cut off before its request, which no worker may run meanwhile (E4).
func TestNotesTellOfEffectsThatWereCutOff(t *testing.T) {
	t.Parallel()
	require.Equal(t, Note{Text: "charge: effect card was cut off with vm/7; its outcome is decided at 1970-01-01 00:01:30 UTC"},
		noteOf([]store.Awaited{
			{What: store.WaitsTopic, Activity: "charge", Topic: "pay", N: 1},
			{What: store.WaitsEffect, Activity: "charge", Topic: "card", Holder: "vm/7", Due: 90e6, N: 1},
		}, map[string]bool{"pay": true}))
}
