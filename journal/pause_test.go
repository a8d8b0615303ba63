package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

func TestUndoPause(t *testing.T) {
	t.Parallel()
	p := journal.UndoPause("refund:2", 7)
	require.Equal(t, journal.PauseRef{Kind: journal.PauseSleep, Name: "undo:refund:2:7", Position: "undo"}, p)
	name, failures, is := p.Undo()
	require.True(t, is)
	require.Equal(t, "refund:2", name)
	require.Equal(t, 7, failures)
	for _, other := range []journal.PauseRef{
		{},
		{Kind: journal.PauseSleep, Name: "undo:refund:7", Position: "3"},
		{Kind: journal.PauseSleep, Name: "undo:refund", Position: "undo"},
		{Kind: journal.PauseSleep, Name: "undo:refund:x", Position: "undo"},
		{Kind: journal.PauseSignal, Name: "undo:refund:7", Position: "undo"},
	} {
		_, _, is := other.Undo()
		require.False(t, is, other)
	}
}
