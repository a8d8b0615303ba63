package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// grouped is a group whose transactions only take time, and what they held.
type grouped struct {
	group
	mu      sync.Mutex
	batches [][]*effectCall
	under   map[rowKey]bool
	running int
	most    int
	crossed bool // a row was in two transactions at a time
}

func newGrouped(took time.Duration) *grouped {
	x := &grouped{under: map[rowKey]bool{}}
	x.group = group{rows: map[rowKey]bool{}, commit: func(_ context.Context, writes []*effectCall) {
		x.begin(writes)
		time.Sleep(took)
		x.end(writes)
	}}
	return x
}

func (x *grouped) begin(writes []*effectCall) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.batches = append(x.batches, writes)
	x.running++
	x.most = max(x.most, x.running)
	for _, w := range writes {
		x.crossed = x.crossed || x.under[w.row()]
	}
	for _, w := range writes {
		x.under[w.row()] = true
	}
}

func (x *grouped) end(writes []*effectCall) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.running--
	for _, w := range writes {
		w.err = nil
		delete(x.under, w.row())
	}
}

func writeOf(request, size int) *effectCall {
	return &effectCall{
		lease:  store.Lease{Request: journal.GUID{byte(request >> 8), byte(request)}},
		effect: journal.Effect{Result: make([]byte, size)},
	}
}

// E4: whoever finds room commits at once, what comes meanwhile is the next
// transaction; their number and size have limits, no row is in two of them, and
// each write is in exactly one.
func TestGroupLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(r, "writes")
		requests := rapid.IntRange(1, n).Draw(r, "requests")
		large := rapid.IntRange(1, 50).Draw(r, "large")
		synctest.Test(t, func(t *testing.T) {
			x := newGrouped(time.Millisecond)
			var all sync.WaitGroup
			for i := range n {
				w := writeOf(i%requests, 10)
				if i%large == 0 {
					w = writeOf(i%requests, groupBytes/3)
				}
				all.Go(func() {
					if err := x.join(t.Context(), w); err != nil {
						t.Errorf("write %d: %v", i, err)
					}
				})
			}
			all.Wait()
			seen := map[*effectCall]int{}
			for _, writes := range x.batches {
				require.LessOrEqual(t, len(writes), groupWrites)
				size := 0
				for _, w := range writes {
					seen[w]++
					size += len(w.effect.Result)
				}
				require.LessOrEqual(t, size, groupBytes)
			}
			require.Len(t, seen, n)
			for _, times := range seen {
				require.Equal(t, 1, times)
			}
			require.LessOrEqual(t, x.most, groupsAtOnce)
			require.False(t, x.crossed)
			require.Empty(t, x.waiting)
			require.Empty(t, x.rows)
		})
	})
}

// A single write waits for nobody, and a write larger than the limit goes alone.
func TestGroupOfOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newGrouped(time.Second)
		began := time.Now()
		require.NoError(t, x.join(t.Context(), writeOf(1, groupBytes+1)))
		require.Equal(t, time.Second, time.Since(began))
	})
}

// Who waits can give up; who is being committed cannot (J4).
func TestJ4GroupGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newGrouped(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		errs := make([]error, groupsAtOnce+3)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { errs[i] = x.join(ctx, writeOf(i, 1)) })
			synctest.Wait()
		}
		other := make(chan error, 1)
		go func() { other <- x.join(t.Context(), writeOf(99, 1)) }()
		synctest.Wait()
		began := time.Now()
		cancel()
		all.Wait()
		require.Equal(t, time.Hour, time.Since(began))
		for i, err := range errs {
			if i < groupsAtOnce {
				require.NoError(t, err, "%d is being committed", i)
				continue
			}
			require.ErrorIs(t, err, errNotSent)
			require.ErrorIs(t, err, context.Canceled)
		}
		require.NoError(t, <-other)
		require.Len(t, x.batches, groupsAtOnce+1)
	})
}

// The queue has a limit, past which a write goes by itself.
func TestGroupQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newGrouped(time.Hour)
		alone := 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range groupsAtOnce + groupQueue + 5 {
			all.Go(func() {
				err := x.join(t.Context(), writeOf(i, 1))
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, errAlone) {
					alone++
				}
			})
		}
		all.Wait()
		require.Equal(t, 5, alone)
	})
}

// A panic in a transaction is the caller's whose write leads it; the others are
// told that they do not know.
func TestGroupPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		g := &group{rows: map[rowKey]bool{}, commit: func(_ context.Context, writes []*effectCall) {
			<-gate
			if len(writes) > 1 {
				panic("broken")
			}
			writes[0].err = nil
		}}
		var mu sync.Mutex
		outcomes := map[string]int{}
		var all sync.WaitGroup
		for i := range groupsAtOnce + 4 {
			all.Go(func() {
				outcome := "panics"
				defer func() {
					_ = recover()
					mu.Lock()
					defer mu.Unlock()
					outcomes[outcome]++
				}()
				err := g.join(t.Context(), writeOf(i, 1))
				if outcome = "committed"; err != nil {
					require.ErrorIs(t, err, store.ErrUnknown)
					outcome = "unknown"
				}
			})
			synctest.Wait()
		}
		close(gate)
		all.Wait()
		require.Equal(t, map[string]int{"committed": groupsAtOnce, "panics": 1, "unknown": 3}, outcomes)
		require.Zero(t, g.running)
	})
}
