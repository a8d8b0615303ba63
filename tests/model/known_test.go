package model

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Flows that once ended otherwise than they read.
func TestKnownFlows(t *testing.T) {
	t.Parallel()
	known, err := os.ReadFile("testdata/known.txt")
	require.NoError(t, err)
	for text := range strings.SplitSeq(string(known), "\n\n") {
		name, _, _ := strings.Cut(text, "\n")
		for world, modes := range worlds {
			t.Run(strings.TrimPrefix(name, "# ")+"/"+world, func(t *testing.T) {
				t.Parallel()
				p := &plan{flows: append([]string{text}, standing...), world: faults{Engines: modes}}
				for v := range 3 {
					p.inputs = append(p.inputs, map[string]any{"v": v})
				}
				p.expect()
				require.Empty(t, play(t, p))
			})
		}
	}
}
