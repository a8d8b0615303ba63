package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// marker names a batch and the backend that was to commit it (J4).
type marker struct {
	session journal.GUID
	seq     int64
	pid     uint32
	name    string
}

// resolveDelay is the pause between attempts to find out an outcome.
const resolveDelay = 100 * time.Millisecond

// resolve finds out what became of a commit whose answer was lost (J4): on a
// new connection it inserts the same marker, which waits for the old
// transaction, and then either finds the marker (nil: committed) or has taken
// its place (store.ErrUnavailable: nothing was committed, and nothing will
// be). store.ErrUnknown when the database could not be asked in time.
func (s *Store) resolve(ctx context.Context, m marker, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ResolveTimeout)
	defer cancel()
	for {
		committed, err := s.outcome(ctx, m)
		switch {
		case err == nil && committed:
			s.log.Info("the answer of a commit was lost; it was committed", "session", m.session, "seq", m.seq, "cause", cause)
			return nil
		case err == nil:
			s.log.Info("the answer of a commit was lost; it was not committed", "session", m.session, "seq", m.seq, "cause", cause)
			return fmt.Errorf("postgres: commit: %w: %w", store.ErrUnavailable, cause)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("postgres: commit: %w: %w; asking for it: %w", store.ErrUnknown, cause, err)
		case <-time.After(resolveDelay):
		}
	}
}

// outcome asks once. An attempt that itself ends unknown is repeated: whoever
// took the marker's place has left that in it.
func (s *Store) outcome(ctx context.Context, m marker) (committed bool, err error) {
	c, raw, err := s.dial(ctx, newSession())
	if err != nil {
		return false, err
	}
	defer closeSoon(raw)
	err = c.query(ctx, "resolve_terminate", nil, pInt(int64(m.pid)), pText(m.name))
	if err != nil {
		return false, err
	}
	if err := c.require(ctx, "begin", "resolve_marker", "resolve_read", "commit"); err != nil {
		return false, err
	}
	b := c.batch()
	b.queue("begin")
	b.queue("resolve_marker", pUUID(m.session), pInt(m.seq))
	b.queue("resolve_read", pUUID(m.session), pInt(m.seq))
	b.queue("commit")
	r := b.send(ctx)
	r.each(nil)
	r.each(nil)
	found := false
	r.each(func(v row) error {
		found, committed = true, !v.bool(0)
		return nil
	})
	tag := r.each(nil)
	if err := r.close(); err != nil {
		return false, err
	}
	if !found || tag != "COMMIT" {
		return false, fmt.Errorf("the marker could not be read: COMMIT was answered %s", tag)
	}
	return committed, nil
}
