package postgres

import (
	"context"
	"fmt"
	"slices"
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
	free   []*lent
	spaces int
}

// lend gives a migrated and empty space, which its Close gives back.
func (l *lender) lend(t *testing.T) store.Store {
	t.Helper()
	s := l.take()
	if s.Store == nil {
		s.Store = openIn(l.t, l.dsn, func(c *Config) { c.Space = fmt.Sprint("suite-", s.number) })
	}
	s.back = sync.OnceFunc(func() {
		if t.Failed() {
			return // what it left is not for others
		}
		if err := s.run(l.t, emptied); err != nil {
			t.Errorf("empty the space: %v", err)
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.free = append(l.free, s)
	})
	return s
}

// take gives a space that is free, or the number of a new one.
func (l *lender) take() *lent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.free) - 1; last >= 0 {
		s := l.free[last]
		l.free = l.free[:last]
		return s
	}
	l.spaces++
	s := &lent{number: l.spaces}
	l.t.Cleanup(s.hangUp)
	return s
}

// emptied makes a space as it was migrated.
const emptied = `BEGIN;
DELETE FROM batches; DELETE FROM dead_letters; DELETE FROM payloads; DELETE FROM effects; DELETE FROM signals;
DELETE FROM woken; DELETE FROM waits; DELETE FROM dispatches; DELETE FROM entries; DELETE FROM receipts;
DELETE FROM instances; DELETE FROM tombs; DELETE FROM jobs; DELETE FROM flows; UPDATE space SET epoch = 1;
COMMIT`

// lent is a space until its Close. A committer that is closed is used again, too.
type lent struct {
	*Store
	number int
	back   func()

	mu   sync.Mutex
	idle []*committer
}

func (l *lent) hangUp() {
	for _, c := range l.idle {
		c.Close()
	}
}

// Close gives the space back.
func (l *lent) Close() { l.back() }

// Committer gives a connection that is free.
func (l *lent) Committer(ctx context.Context, patient bool) (store.Committer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range l.idle {
		if c.patient == patient {
			l.idle = slices.Delete(l.idle, i, i+1)
			c.session, c.seq = newSession(), 0
			return &lentCommitter{c, l}, nil
		}
	}
	c, err := l.Store.Committer(ctx, patient)
	if err != nil {
		return nil, err
	}
	return &lentCommitter{c.(*committer), l}, nil
}

type lentCommitter struct {
	*committer
	to *lent
}

// Close ends what is open, and gives the connection back.
func (c *lentCommitter) Close() {
	if c.committer == nil {
		return
	}
	_ = c.Rollback(context.Background()) // or it drops the connection, which is made anew
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.to.idle = append(c.to.idle, c.committer)
	c.committer = nil
}
