package engine

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// Times of looking for stale requests.
const (
	// removeStaleEvery is the pause between two looks at requests that wait in the bus.
	removeStaleEvery = 10 * time.Second
	// staleAfter is how long a request has waited before its row is looked up.
	staleAfter = 5 * time.Second
)

// removeStale removes requests from the bus that nobody needs: their row is gone or held, or it was sent
// again since, or they are of an earlier epoch. Where nobody serves a topic, nothing else would
// remove them.
func (e *Engine) removeStale(ctx context.Context) (more bool, err error) {
	n, err := e.cfg.Bus.RemoveStale(ctx, staleAfter, e.stale)
	return n > 0, err
}

// stale says which requests nobody needs. One that cannot be read is left to a worker, who records it.
func (e *Engine) stale(ctx context.Context, msgs []transport.Message) ([]bool, error) {
	is := make([]bool, len(msgs))
	var keys []collation.RowKey
	var at []int
	for i := range msgs {
		h := &msgs[i].Header
		if epoch := e.pub.Epoch.Load(); h.Epoch != epoch {
			is[i] = h.Epoch < epoch
			continue
		}
		q, err := wire.Decode[wire.Request](msgs[i].Body)
		if err != nil {
			continue
		}
		if job, err := journal.ParseJobID(q.Job); err == nil {
			keys, at = append(keys, collation.RowKey{Job: job, GUID: h.GUID}), append(at, i)
		}
	}
	for from := 0; from < len(keys); from += store.MaxSweep {
		to := min(from+store.MaxSweep, len(keys))
		publications, err := e.cfg.Store.Publications(ctx, keys[from:to])
		if err != nil {
			return nil, err
		}
		for n, publication := range publications {
			i := at[from+n]
			is[i] = msgs[i].Header.Publication < publication || publication == 0
		}
	}
	return is, nil
}
