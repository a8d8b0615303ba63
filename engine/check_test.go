package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeysAreText: a key can be printed, and listed on one line.
func TestKeysAreText(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"order-42", "ключ 🔑", " a ", "a/../b"} {
		require.True(t, printable(key), "%q", key)
	}
	for _, key := range []string{"a\nb", "a\x00", "\x7f", "\u009b31m", "a\xff"} {
		require.False(t, printable(key), "%q", key)
	}
}
