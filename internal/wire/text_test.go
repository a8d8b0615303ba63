package wire

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

func TestCutText(t *testing.T) {
	t.Parallel()
	require.Equal(t, "plain ü", CutText("plain ü"))
	require.Equal(t, "a\uFFFDb", CutText("a\x00b"))
	require.Equal(t, "a\uFFFDb", CutText("a\xffb"))
	full := strings.Repeat("x", MaxText)
	require.Equal(t, full, CutText(full))
	for _, long := range []string{full + "y", strings.Repeat("ü", MaxText), strings.Repeat("\x00", MaxText)} {
		cut := CutText(long)
		require.LessOrEqual(t, len(cut), MaxText)
		require.True(t, utf8.ValidString(cut))
		require.True(t, strings.HasSuffix(cut, "…"))
	}
}

func TestT9LaneOf(t *testing.T) {
	t.Parallel()
	require.Zero(t, LaneOf(journal.JobID{0xff, 0xff, 0xff, 0xff}, 1))
	require.Equal(t, 2, LaneOf(journal.JobID{0, 0, 0, 18}, 16), "a change moves the jobs of a running space")
	require.Equal(t, 15, LaneOf(journal.JobID{0xff, 0xff, 0xff, 0xff}, 16))
}
