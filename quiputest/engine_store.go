package quiputest

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// glance is the shortest pause between two looks at the tables.
const glance = 10 * time.Millisecond

// engineStore is the store as the engine sees it. A sweeper looks every few milliseconds for due rows; here
// it sleeps until there are some, so that days pass at once.
type engineStore struct {
	*memstore.Store
	ended  <-chan struct{} // closed when the engine should end
	writes hub             // told of every change of the tables
	keeps  hub             // told when the time changes at which a kept signal expires next
	kept   atomic.Int64    // that time
	moved  atomic.Int64    // time of the last change
	asleep atomic.Bool     // the sweeper has nothing to do
	world  *hub            // told when the sweeper sleeps, and of every change
}

// upkeep are the writing calls that do not count as changes: those that the clock makes anyway,
// and those of the sweeper, which looks again after them.
var upkeep = []string{"prune", "claim"}

func newEngineStore(world *hub, ended <-chan struct{}) *engineStore {
	s := &engineStore{world: world, ended: ended}
	s.moved.Store(int64(now()))
	s.kept.Store(int64(collation.Never))
	s.Store = memstore.New(memstore.Config{
		Space: space,
		Now:   func() int64 { return time.Now().UnixMicro() },
		Fault: func(op string) error {
			if done, ok := strings.CutSuffix(op, ".done"); ok && !slices.Contains(upkeep, done) {
				s.moved.Store(int64(now()))
				s.writes.tell()
				s.world.tell()
			}
			return nil
		},
	})
	return s
}

// now returns the time in the tables.
func now() collation.Micros { return collation.Micros(time.Now().UnixMicro()) }

// Due implements store.Engine. It waits until there is something to do, which includes a request
// past its `within` for the next sweep. It ignores its time limit, since a year has too many
// sweeps.
func (s *engineStore) Due(ctx context.Context, limit int) ([]store.DueRow, store.Timing, error) {
	defer s.asleep.Store(false)
	for {
		changed := s.writes.changed()
		next, kept := s.Next()
		if s.kept.Swap(int64(kept)) != int64(kept) {
			s.keeps.tell()
		}
		if past(next) {
			return s.Store.Due(ctx, limit)
		}
		s.asleep.Store(true)
		s.world.tell()
		if !rest(s.ended, changed, until(next)) {
			return nil, store.Timing{}, nil
		}
		s.asleep.Store(false)
	}
}

// Late implements store.Engine. Like Due it waits, for kept signals that have expired.
func (s *engineStore) Late(ctx context.Context, kind journal.MessageKind, limit int) ([]collation.RowKey, error) {
	for {
		changed := s.keeps.changed()
		late, err := s.Store.Late(ctx, kind, limit)
		if kind != journal.MessageSignal || err != nil || len(late) > 0 ||
			!rest(s.ended, changed, until(collation.Micros(s.kept.Load()))) {
			return late, err
		}
	}
}

// Extend implements store.Engine: in memory there is always room, and nobody has to
// look for it every minute of a year.
func (s *engineStore) Extend(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Prune implements store.Engine. An engine prunes every hour; in memory there is room for a day.
func (s *engineStore) Prune(ctx context.Context, limit int) (int, error) {
	n, err := s.Store.Prune(ctx, limit)
	if n < limit {
		rest(s.ended, nil, 24*time.Hour)
	}
	return n, err
}

// quiet returns the time since the last change.
func (s *engineStore) quiet() time.Duration {
	return time.Duration(int64(now())-s.moved.Load()) * time.Microsecond
}

// over says that something is due.
func (s *engineStore) over() bool {
	next, _ := s.Next()
	return past(next)
}

// wait is how long it takes until something is due.
func (s *engineStore) wait() time.Duration {
	next, _ := s.Next()
	return until(next)
}

func past(at collation.Micros) bool { return at != collation.Never && at <= now() }

// until is how long to wait for a time in the tables.
func until(at collation.Micros) time.Duration {
	if at == collation.Never {
		return forever
	}
	return max(time.Duration(at-now())*time.Microsecond, glance)
}
