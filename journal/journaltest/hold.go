package journaltest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal/store"
)

var holds = cases{
	"many first runs at once: one begins (P17)": holdMany,
}

// holdMany: the first start of a run takes its lease.
func holdMany(b *bench) {
	r := b.asked()
	b.live()
	began := atOnce(8, func(i int) string {
		_, _, err := b.s.StartEffect(b.ctx(), b.fresh(r, fmt.Sprint("w", i)), effect("pay", 0))
		if b.won(err, store.ErrStale, store.ErrLeased) {
			return fmt.Sprint("w", i)
		}
		return ""
	})
	row := b.effectsOf(r.Job, r.GUID)[0]
	require.Equal(b, map[string]int{row.Holder: 1, "": 7}, began)
	require.Equal(b, []any{r.Fence + 1, true}, []any{row.Fence, row.Live})
	require.Len(b, b.chain(r.Job, r.GUID), 1)
	b.held(r, row.Holder)
	got(b.s.Keep(b.ctx(), b.fresh(r, row.Holder)))(b)
	b.held(r, row.Holder)
}
