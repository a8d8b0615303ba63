package nats

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

const (
	// backoffFirst and backoffMax bound the wait before a loop binds again.
	backoffFirst = 50 * time.Millisecond
	backoffMax   = 5 * time.Second
	// repairWait bounds one attempt to make a stream again.
	repairWait = 5 * time.Second
)

// repair makes a stream again that a publish found missing, with at most one attempt at a
// time per stream. It never blocks the caller. A process that makes no streams leaves it to
// the engines.
func (b *Bus) repair(kind transport.Kind) {
	b.closing.RLock()
	defer b.closing.RUnlock()
	if b.closed || b.cfg.LeaveStreams || !b.streams.busy[kind].TryLock() {
		return
	}
	b.streams.busy[kind].Unlock()
	b.owned.Go(func() {
		b.streams.mu.Lock()
		recent := time.Since(b.streams.at[kind]) < ensureEvery
		b.streams.mu.Unlock()
		if recent {
			return
		}
		ctx, cancel := context.WithTimeout(b.ctx, repairWait)
		defer cancel()
		if err := b.ensureStream(ctx, kind); err != nil {
			b.cfg.Log.Warn("stream cannot be made again yet", "stream", b.streamName(kind), "error", err)
		}
	})
}

// sleep waits or returns early when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
