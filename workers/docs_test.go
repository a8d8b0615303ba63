package workers

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The Go code of docs/functions.md is in example_test.go, which runs it.
func TestDocumentedCodeIsCodeThatRuns(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../docs/functions.md")
	require.NoError(t, err)
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	blocks := strings.Split(string(document), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, rest := range blocks {
		block, _, ended := strings.Cut(rest, "```")
		require.True(t, ended)
		require.Contains(t, string(example), block)
	}
}
