package journal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// S15: the digest of a key depends on the space and the key, and is kept as it is, with whatever
// is behind it.
func TestPrivateKey(t *testing.T) {
	t.Parallel()
	const golden = "sha256:d2bce58df9bf4b097b2ef615221230741dd795caa294848c23db10888e96a0a7"
	key := PrivateKey("shop", "ann@example.org")
	require.Equal(t, golden, key)
	require.Equal(t, key, PrivateKey("shop", key))
	require.Equal(t, key, PrivateKey("mall", key))
	child := key + "/ship-0a1b2c"
	require.Equal(t, child, PrivateKey("shop", child))
	seen := map[string]bool{}
	for _, of := range [][2]string{
		{"shop", "ann@example.org"},
		{"mall", "ann@example.org"},
		{"shop", "ann"},
		{"sho", "pann"},
		{"shop", "sha256:"},
		{"shop", strings.ToUpper(key)},
		{"shop", key[:len(key)-1]},
		{"shop", key[:len(key)-1] + "g"},
	} {
		made := PrivateKey(of[0], of[1])
		require.Len(t, made, len(key))
		require.True(t, IsPrivateKey(made))
		require.False(t, seen[made], of)
		seen[made] = true
	}
}
