package api

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// O10: a page also ends before its items have over 8 MiB, but has at least one of them.
func TestO10PagesHaveFewBytes(t *testing.T) {
	t.Parallel()
	half, much := strings.Repeat("x", maxPage/2-100), strings.Repeat("x", 2*maxPage)
	all := []string{half, half, half, much, "a", "b"}
	var lengths []int
	for s := (slice{limit: 100}); ; {
		page, next, err := cut(all, s)
		require.NoError(t, err)
		lengths = append(lengths, len(page))
		if next == "" {
			break
		}
		s.from += len(page)
	}
	require.Equal(t, []int{2, 1, 1, 2}, lengths)
}

// O10: a beginning of a GUID that fits several messages names none of them.
func TestO10OneMessageOfABeginning(t *testing.T) {
	t.Parallel()
	j := &view.Job{}
	for _, first := range []byte{0x1a, 0x1b, 0x2c} {
		j.Messages = append(j.Messages, view.Message{GUID: journal.GUID{first}})
	}
	m, err := messageOf(j, "1b")
	require.NoError(t, err)
	require.Equal(t, journal.GUID{0x1b}, m.GUID)
	_, err = messageOf(j, "1")
	require.Equal(t, CodeMalformed, problemOf(err).Code)
	require.Contains(t, err.Error(), "2 messages")
	_, err = messageOf(j, "3")
	require.Equal(t, CodeNotFound, problemOf(err).Code)
}
