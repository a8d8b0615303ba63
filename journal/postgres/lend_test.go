package postgres

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
)

// lender has the spaces that no test uses now. A test takes milliseconds, and a database with
// schema and connections a hundred times that, so a space is emptied and used again.
type lender struct {
	// place returns the next space's database and name.
	place func(t testing.TB, n int) (dsn, name string)
	// beside empties what the database has besides the space.
	beside string
	clock  bool // it can be moved
	least  bool // who uses a space has its roles, and not the rights of its owner

	mu   sync.Mutex
	free []*space
	all  []*space
}

// spaces each have a database of their own.
var spaces = lender{
	place:  func(t testing.TB, _ int) (dsn, name string) { return devtest.Kept(t), "test-1" },
	beside: "DROP SCHEMA public CASCADE; CREATE SCHEMA public;",
}

// lending closes the spaces after the tests.
type lending struct{ *testing.M }

func (m lending) Run() int {
	defer spaces.close()
	return m.M.Run()
}

// space is a space that is lent until its Close.
type space struct {
	*journaltest.Thrifty
	at                        *Store // with the rights of the owner
	engine, worker, retention *Store
	back                      func()
}

// Close gives the space back.
func (s *space) Close() { s.back() }

// lend returns a migrated and empty space.
func (l *lender) lend(t testing.TB) *space {
	t.Helper()
	s := l.take(t)
	s.back = sync.OnceFunc(func() {
		if t.Failed() {
			return // what it left is not for others
		}
		if err := s.at.run(t, emptied+l.beside); err != nil {
			t.Errorf("empty the space: %v", err)
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.free = append(l.free, s)
	})
	return s
}

// take returns a free space or a new one.
func (l *lender) take(t testing.TB) *space {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.free) - 1; last >= 0 {
		s := l.free[last]
		l.free = l.free[:last]
		return s
	}
	dsn, name := l.place(t, len(l.all)+1)
	s := migrated(t, dsn, func(c *Config) { c.Space = name })
	if l.clock {
		require.NoError(t, s.at.run(t, movable))
	}
	if l.least {
		s.least(t)
	}
	l.all = append(l.all, s)
	return s
}

// close closes all spaces, none of which is in use.
func (l *lender) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.all {
		drivers.Delete(s.at)
		s.Thrifty.Close()
		if s.engine != s.at {
			s.worker.Close()
			s.retention.Close()
			s.at.Close()
		}
	}
	l.all, l.free = nil, nil
}

// emptied resets a space to its state after migration.
const emptied = `BEGIN;
DELETE FROM sessions; DELETE FROM batches; DELETE FROM dead_letters; DELETE FROM payloads; DELETE FROM effects; DELETE FROM signals;
DELETE FROM resolved_waits; DELETE FROM waits; DELETE FROM dispatches; DELETE FROM entries; DELETE FROM receipts;
DELETE FROM instances; DELETE FROM jobs; DELETE FROM flows; UPDATE space SET epoch = 1, floor = 0, dropped = 0, expire = 2592000000000;
COMMIT;`
