package workers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/wire"
)

// Pauses of a lost branch are cancelled and do not count.
func TestE15LostWaitsDoNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		for i := range wire.MaxPauses + 1 {
			_, _, err := First(ctx,
				func(ctx context.Context) (int, error) { return 0, Sleep(ctx, fmt.Sprint("patience", i), time.Hour) },
				func(ctx context.Context) (int, error) {
					return effects.Do(ctx, fmt.Sprint("ask", i), func(context.Context) (int, error) { return i, nil }, effects.Pure)
				},
			)
			if err != nil {
				return i, err
			}
		}
		return 1, nil
	}, `1`)
	require.Equal(t, 1, result[int](t, w.next()))
}
