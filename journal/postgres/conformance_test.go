package postgres

import (
	"fmt"
	"sync"
	"testing"

	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/store"
)

// A case of the suite takes milliseconds, a space and its connections take ten times
// that: a space is emptied and used again. All are in one database, so that it is on
// trial as well that they know nothing of each other.
func TestConformance(t *testing.T) {
	t.Parallel()
	l := &lender{t: t, dsn: devtest.Postgres(t)}
	journaltest.Run(t, l.lend)
}

// lender has the spaces that nobody uses just now.
type lender struct {
	t   *testing.T
	dsn string

	mu     sync.Mutex
	free   []*space
	spaces int
}

// space is one that is lent until its Close.
type space struct {
	*journaltest.Thrifty
	at   *Store
	back func()
}

// Close gives the space back.
func (s *space) Close() { s.back() }

// lend gives a migrated and empty space.
func (l *lender) lend(t *testing.T) store.Store {
	t.Helper()
	s := l.take()
	s.back = sync.OnceFunc(func() {
		if t.Failed() {
			return // what it left is not for others
		}
		if err := s.at.run(l.t, emptied); err != nil {
			t.Errorf("empty the space: %v", err)
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.free = append(l.free, s)
	})
	return s
}

// take gives a space that is free, or a new one.
func (l *lender) take() *space {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.free) - 1; last >= 0 {
		s := l.free[last]
		l.free = l.free[:last]
		return s
	}
	l.spaces++
	at := openIn(l.t, l.dsn, func(c *Config) { c.Space = fmt.Sprint("suite-", l.spaces) })
	s := &space{at: at, Thrifty: &journaltest.Thrifty{Store: at, Again: func(c store.Committer) {
		c.(*committer).session, c.(*committer).seq = newSession(), 0
	}}}
	l.t.Cleanup(s.Thrifty.Close)
	return s
}

// emptied makes a space as it was migrated.
const emptied = `BEGIN;
DELETE FROM sessions; DELETE FROM batches; DELETE FROM dead_letters; DELETE FROM payloads; DELETE FROM effects; DELETE FROM signals;
DELETE FROM woken; DELETE FROM waits; DELETE FROM dispatches; DELETE FROM entries; DELETE FROM receipts;
DELETE FROM instances; DELETE FROM tombs; DELETE FROM jobs; DELETE FROM flows; UPDATE space SET epoch = 1;
COMMIT`
