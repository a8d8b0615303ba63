package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/archive"
	"github.com/quipu-journal/quipu/internal/store"
)

// W11: what a process left that died while it archived is removed by the next, which
// archives the same partition anew. Nothing else of the directory is.
func TestW11LeftoversGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"s-days-1.jsonl.4711", "s-days-1.jsonl.gz", "s-days-1.jsonl.old", "s-days-11.jsonl.4711", "s-days-1.jsonl"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	names := func() (out []string) {
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, f := range files {
			out = append(out, f.Name())
		}
		return out
	}
	kept := []string{"s-days-1.jsonl", "s-days-1.jsonl.gz", "s-days-1.jsonl.old", "s-days-11.jsonl.4711"}
	to := archive.To(dir)
	refused := errors.New("refused")
	require.ErrorIs(t, to(t.Context(), "s-days-1", func(store.Visit) error { return refused }), refused)
	require.Equal(t, kept, names())
	whole, err := os.ReadFile(filepath.Join(dir, "s-days-1.jsonl"))
	require.NoError(t, err)
	require.Equal(t, "x", string(whole), "it stays until there is another")

	require.NoError(t, to(t.Context(), "s-days-1", func(store.Visit) error { return nil }))
	require.Equal(t, kept, names())
	whole, err = os.ReadFile(filepath.Join(dir, "s-days-1.jsonl"))
	require.NoError(t, err)
	require.NotEqual(t, "x", string(whole))
	require.ErrorIs(t, archive.To(filepath.Join(dir, "nowhere"))(t.Context(), "s", nil), os.ErrNotExist)
}
