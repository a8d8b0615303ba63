package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// S13: a mark is newer by its epoch, then by its beat, and never than that of another space.
func TestMarksAreCompared(t *testing.T) {
	t.Parallel()
	old := store.Mark{Space: journal.GUID{1}, Epoch: 1, Beat: 900}
	require.True(t, store.Mark{Space: journal.GUID{1}, Epoch: 1, Beat: 901}.After(old))
	require.True(t, store.Mark{Space: journal.GUID{1}, Epoch: 2, Beat: 1}.After(old))
	require.False(t, old.After(old))
	require.False(t, store.Mark{Space: journal.GUID{2}, Epoch: 2, Beat: 1}.After(old))
}

// What is read as a mark is written as the same text.
func FuzzParseMark(f *testing.F) {
	f.Add(store.Mark{Space: journal.GUID{1}, Epoch: 3, Beat: 7}.String())
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := store.ParseMark(text); err == nil {
			require.Equal(t, text, m.String())
		}
	})
}
