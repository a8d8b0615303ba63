package cli

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// FuzzDevFile: the content of dev.json is read, or refused with its path. What was read is
// written back the same. The disk waits for nothing, so that the time is not its.
func FuzzDevFile(f *testing.F) {
	f.Add([]byte(`{"postgres":"postgres://x","nats":"nats://y","http":"","pid":7,"space":"shop"}`))
	f.Add([]byte(`{"pid":-1}`))
	f.Add([]byte(`{`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		read := func(text []byte) (DevFile, error) {
			require.NoError(t, os.WriteFile(DevPath(dir), text, 0o600))
			return ReadDevFile(dir)
		}
		d, err := read(text)
		if err != nil {
			require.ErrorContains(t, err, DevPath(dir))
			return
		}
		written, err := d.text()
		require.NoError(t, err)
		again, err := read(written)
		require.NoError(t, err)
		require.Equal(t, d, again)
	})
}

// FuzzReadEnv: a variable is read like its flag, or refused by its name. The command line wins.
func FuzzReadEnv(f *testing.F) {
	f.Add("shop", "1024", "1m30s")
	f.Add("", "1_000", "-5")
	f.Add("\x00", "0x10", "9223372036854775808ns")
	f.Fuzz(func(t *testing.T, space, batch, wait string) {
		cmd := &cobra.Command{Use: "x"}
		cmd.Flags().String("space", "default", "")
		given := cmd.Flags().Int("given", 1, "")
		n, d := cmd.Flags().Int("max-batch", 7, ""), cmd.Flags().Duration("wait", time.Second, "")
		FromEnv(cmd.Flags(), "space", "given", "max-batch", "wait")
		require.NoError(t, cmd.Flags().Set("given", "3"))
		vars := map[string]string{"QUIPU_SPACE": space, "QUIPU_GIVEN": batch, "QUIPU_MAX_BATCH": batch, "QUIPU_WAIT": wait}
		set, err := ReadEnv(cmd, func(name string) string { return vars[name] })
		require.Equal(t, 3, *given)
		if err != nil {
			require.ErrorContains(t, err, "environment variable QUIPU_")
			return
		}
		for name, value := range map[string]string{"space": space, "max-batch": batch, "wait": wait} {
			require.Equal(t, value != "", set[name], name)
		}
		if batch != "" {
			want, err := strconv.ParseInt(batch, 0, 64)
			require.NoError(t, err)
			require.EqualValues(t, want, *n)
		}
		if wait != "" {
			want, err := time.ParseDuration(wait)
			require.NoError(t, err)
			require.Equal(t, want, *d)
		}
	})
}
