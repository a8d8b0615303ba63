package journal_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

// S9: the MAC of an entry covers its key, its place and its body; its bytes do not change.
func TestS9EntryMAC(t *testing.T) {
	t.Parallel()
	mac := func(key string, space, job, chain byte, seq int64, body string) string {
		m := journal.MAC([]byte(key), journal.GUID{space}, journal.JobID{job}, journal.GUID{chain}, seq, []byte(body))
		return hex.EncodeToString(m[:])
	}
	want := mac("k", 1, 2, 3, 4, "5")
	require.Equal(t, "8c760647322b11e8a89e6770422d9a2e", want)
	for _, other := range []string{
		mac("K", 1, 2, 3, 4, "5"), mac("k", 2, 2, 3, 4, "5"), mac("k", 1, 3, 3, 4, "5"), mac("k", 1, 2, 4, 4, "5"),
		mac("k", 1, 2, 3, 5, "5"), mac("k", 1, 2, 3, 4, "6"),
	} {
		require.NotEqual(t, want, other)
	}
}
