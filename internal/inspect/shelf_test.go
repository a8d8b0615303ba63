package inspect

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// A fold that left outputs out, because there were too many bytes of them, serves nobody who takes any
// size; whoever wants less than it has takes it as it is.
func TestAFoldThatLeftOutputsOutIsMadeAgain(t *testing.T) {
	t.Parallel()
	k := &kept{}
	told := func(w Want) *fold {
		x := &reading{want: w, now: &store.JobView{}}
		x.now.ID = journal.JobID{1}
		f, err := k.told(context.Background(), x, parts{events: w.Events})
		require.NoError(t, err)
		return f
	}
	bounded := Want{Want: view.Want{Events: true}}
	first := told(bounded)
	require.Same(t, first, told(bounded))
	require.Same(t, first, told(Want{}))
	require.Same(t, first, told(Want{Want: view.Want{Events: true}, AnySize: true}), "it has all")
	first.cut = true
	require.Same(t, first, told(bounded))
	require.NotSame(t, first, told(Want{Want: view.Want{Events: true}, AnySize: true}))
}
