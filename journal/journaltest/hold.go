package journaltest

import (
	"context"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal/store"
)

var holds = map[string]func(*bench){
	"the first start of a run takes its lease (E9)":       holdStart,
	"Keep that meets such a lease has it (E9)":            holdKeep,
	"many first runs at once: one begins (P17)":           holdMany,
	"a long body and a run that is kept, in either order": holdBody,
}

// fresh returns the lease of a run that was not leased.
func (b *bench) fresh(r collation.Row, holder string) store.Lease {
	return store.Lease{
		Job: r.Job, Request: r.GUID, Generation: 1, Turn: r.Turn, Fence: r.Fence, Holder: holder, Session: b.live().ID(), Fresh: true,
	}
}

// held checks that the run has taken a lease on the row.
func (b *bench) held(r collation.Row, holder string, runs int) {
	b.Helper()
	row := b.request(r.Job, "work")
	require.Equal(b, []any{holder, r.Fence + 1, runs}, []any{row.Holder, row.Fence, row.Runs})
	require.Equal(b, b.live().ID(), row.Session)
	require.Equal(b, collation.Never, row.NextAt, "nobody else is asked as long as it lasts (P21)")
	_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, r.Turn, "another", b.live().ID())
	require.ErrorIs(b, err, store.ErrLeased)
}

func holdStart(b *bench) {
	r := b.asked()
	row := b.startEffect(b.fresh(r, "w1"), effect("pay", 0))
	require.Equal(b, []any{r.Fence + 1, "w1", true}, []any{row.Fence, row.Holder, row.Live})
	b.held(r, "w1", 1)
	require.Equal(b, r.Fence+1, b.chain(r.Job, r.GUID)[0].Effect.Fence)
	l := b.fresh(r, "w1")
	l.Fence, l.Fresh = row.Fence, false
	b.startEffect(l, effect("ship", 0))
	b.finishEffect(l, completed(effect("pay", 0), `1`))
	b.held(r, "w1", 0)
}

func holdKeep(b *bench) {
	r := b.asked()
	l := b.fresh(r, "w1")
	row := b.startEffect(l, effect("pay", 0))
	b.held(r, "w1", 1)
	kept := got(b.s.Keep(b.ctx(), l))(b)
	require.Equal(b, row.Fence, kept.Fence)
	require.False(b, kept.Fresh, "it knows of its lease now")
	b.held(r, "w1", 1)
	_, err := b.s.Keep(b.ctx(), b.fresh(r, "w2"))
	require.ErrorIs(b, err, store.ErrStale)
	l.Fresh = false
	_, err = b.s.Keep(b.ctx(), l)
	require.ErrorIs(b, err, store.ErrStale, "a run that knows of its lease names its fence")
}

func holdMany(b *bench) {
	r := b.asked()
	var mu sync.Mutex
	began := 0
	b.live()
	together(8, func(i int) {
		_, _, err := b.s.StartEffect(b.ctx(), b.fresh(r, fmt.Sprint("w", i)), effect("pay", 0))
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			began++
		} else {
			requireOneOf(b, err, store.ErrStale, store.ErrLeased)
		}
	})
	require.Equal(b, 1, began)
	require.Len(b, b.chain(r.Job, r.GUID), 1)
	require.Equal(b, 1, b.request(r.Job, "work").Runs)
}

// holdBody: the body of a Tx effect lasts, and its run takes the request meanwhile.
func holdBody(b *bench) {
	id := b.requested(fork, "k")
	r := b.request(id, "left")
	l := b.fresh(r, "w1")
	var kept store.Lease
	row, err := b.s.TxEffect(b.ctx(), l, txEffect("rows"), func(ctx context.Context, _ any) (end store.TxEnd, err error) {
		kept, err = b.s.Keep(ctx, l)
		return resulting(`1`), err
	})
	require.NoError(b, err)
	require.Equal(b, kept.Fence, row.Fence)
	r = b.request(id, "right")
	l = b.fresh(r, "w2")
	calls := 0
	row = got(b.s.TxEffect(b.ctx(), l, txEffect("more"), ends(&calls, resulting(`1`), nil)))(b)
	kept = got(b.s.Keep(b.ctx(), l))(b)
	require.Equal(b, row.Fence, kept.Fence)
}
