package inspect

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// A text is compiled once, one that cannot be read is none, and few are kept.
func TestFlowsAreCompiledOnce(t *testing.T) {
	t.Parallel()
	var c flows
	for n := range 2 * maxFlows {
		f, err := flow.Parse("f.yaml", fmt.Appendf(nil, "flow: f\nversion: \"%d\"\nactivities: {start: {type: trigger}}\n", n))
		require.NoError(t, err)
		got := c.compiled(f.Canonical())
		require.Equal(t, f.Version(), got.Version())
		require.Same(t, got, c.compiled(f.Canonical()))
		require.LessOrEqual(t, len(c.kept), maxFlows)
	}
	require.Nil(t, c.compiled([]byte(`{"flow": 1}`)))
	require.Nil(t, c.compiled([]byte(`{"flow": 1}`)))
}
