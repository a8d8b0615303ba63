package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// marker names a batch and the backend that sends its COMMIT (J4).
type marker struct {
	session journal.GUID
	seq     int64
	pid     uint32
	name    string
}

// resolveDelay is the pause between attempts to learn an outcome.
const resolveDelay = 100 * time.Millisecond

// resolve finds out the outcome of a commit whose answer was lost (J4). On a new connection it
// inserts the same marker; that insert waits for the old transaction. If the marker exists, the
// batch was committed: nil. If the insert takes its place, nothing was or will be committed:
// store.ErrUnavailable. store.ErrUnknown: the database did not answer in time.
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

// outcome asks once. An attempt of unknown outcome can be repeated: a marker that takes the
// batch's place says so itself.
func (s *Store) outcome(ctx context.Context, m marker) (committed bool, err error) {
	c, err := s.dial(ctx)
	if err != nil {
		return false, err
	}
	defer c.leave()
	err = c.query(ctx, "resolve_terminate", nil, pInt(int64(m.pid)), pText(m.name))
	if err != nil {
		return false, err
	}
	found, at := false, [][]byte{pUUID(m.session), pInt(m.seq)}
	err = c.transact(ctx, step{"resolve_marker", at, nil}, step{"resolve_read", at, func(v row) error {
		found, committed = true, !v.bool(0)
		return nil
	}})
	if err == nil && !found {
		err = errors.New("the marker could not be read")
	}
	return committed && err == nil, err
}
