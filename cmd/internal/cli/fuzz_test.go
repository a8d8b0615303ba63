package cli

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDevFile: what stands in dev.json is read or refused with its path, and what
// was read is written as the same.
func FuzzDevFile(f *testing.F) {
	f.Add([]byte(`{"postgres":"postgres://x","nats":"nats://y","http":"","pid":7,"space":"shop"}`))
	f.Add([]byte(`{"pid":-1}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(DevPath(dir), text, 0o600))
		d, err := ReadDevFile(dir)
		if err != nil {
			require.ErrorContains(t, err, DevPath(dir))
			return
		}
		require.NoError(t, d.Write(dir))
		again, err := ReadDevFile(dir)
		require.NoError(t, err)
		require.Equal(t, d, again)
	})
}
