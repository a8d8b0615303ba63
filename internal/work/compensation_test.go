package work

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/wire"
)

// E14: compensations see the request that they undo, also of a job that resumes another.
func TestCompensationsSeeTheRootOfTheirJob(t *testing.T) {
	t.Parallel()
	f := &function{req: &wire.Request{Job: "undo", Root: "other", RootGeneration: 7}}
	f.of(&collation.UndoOrder{Job: "resumed", Generation: 2, Root: "first", RootGeneration: 1})
	require.Equal(t, []any{"resumed", "first", int64(1)}, []any{f.req.Job, f.req.Root, f.req.RootGeneration})
}
