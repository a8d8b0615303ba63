package engine

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal/store"
)

// T6: what docs/wire.md tells the authors of workers about the engine's spans.
func TestT6SpansAsStated(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/wire.md")
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprintf("no answer %d minutes after it was sent", int(anyway.Minutes())))
	require.Contains(t, string(text), fmt.Sprintf("held after %d runs", store.MaxRuns))
}
