package journaltest

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal/store"
)

var holds = cases{
	"many first runs at once: one begins (P17)": holdMany,
}

// holdMany: the first start of a run takes its lease.
func holdMany(b *bench) {
	r := b.asked()
	var mu sync.Mutex
	var began []store.EffectRow
	b.live()
	together(8, func(i int) {
		row, _, err := b.s.StartEffect(b.ctx(), b.fresh(r, fmt.Sprint("w", i)), effect("pay", 0))
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			began = append(began, row)
		} else {
			requireOneOf(b, err, store.ErrStale, store.ErrLeased)
		}
	})
	require.Len(b, began, 1)
	require.Equal(b, []any{r.Fence + 1, true}, []any{began[0].Fence, began[0].Live})
	require.Len(b, b.chain(r.Job, r.GUID), 1)
	b.held(r, began[0].Holder)
	got(b.s.Keep(b.ctx(), b.fresh(r, began[0].Holder)))(b)
	b.held(r, began[0].Holder)
}
