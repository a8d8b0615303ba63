package postgres

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// standing is what the tables hold where a worker's write matched no row.
type standing struct {
	state   journal.JobState
	request bool // the row exists, is a request, and is not held
	turn    int
	runs    int
	holder  string
	busy    bool // an effect of this turn may still be running (E4)
	alive   bool // the session is
}

// stands reads why a worker's write matched no row.
func (s *Store) stands(
	ctx context.Context, c *conn, job journal.JobID, request journal.GUID, session int64,
) (st standing, err error) {
	err = c.query(ctx, "lease_look", func(v row) error {
		st = standing{
			state: journal.JobState(v.text(0)), request: v.bool(1), turn: int(v.int(2)), runs: int(v.int(3)),
			holder: v.text(4), busy: v.bool(5), alive: v.bool(6),
		}
		return nil
	}, pUUID(job), pUUID(request), pInt(session))
	return st, err
}

// Lease implements store.Requests: the run that has the lease is the only one that writes (E9).
func (s *Store) Lease(
	ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	l := store.Lease{Job: job, Request: request, Space: s.cfg.Space, Turn: turn, Holder: holder, Session: session}
	marked := false
	err := s.call(ctx, "lease", func(c *conn) error {
		taken := false
		err := c.query(ctx, "lease_take", func(v row) error {
			taken, l.Fence, l.Runs, l.Generation = true, v.int(0), int(v.int(1)), v.int(2)
			return nil
		}, pUUID(job), pUUID(request), pInt(int64(turn)), pText(holder), pInt(session), pInt(store.MaxRuns))
		if err != nil || taken {
			return err
		}
		st, err := s.stands(ctx, c, job, request, session)
		switch {
		case err != nil:
			return err
		case st.state != journal.JobOpen || !st.request || st.turn != turn:
			return s.refuse("lease", store.ErrStale, request)
		case !st.alive:
			return s.refuse("lease", store.ErrSession, request)
		case st.holder != "" && st.holder != holder, st.busy:
			return s.refuse("lease", store.ErrLeased, request)
		case st.runs >= store.MaxRuns:
			did, err := c.did(ctx, "lease_exhausted", pUUID(job), pUUID(request), pInt(int64(turn)), pText(holder), pInt(store.MaxRuns))
			if marked = marked || did; err != nil {
				return err
			}
			return s.refuse("lease", store.ErrExhausted, request)
		}
		// The obstacle has gone meanwhile: the message will come again.
		return s.refuse("lease", store.ErrLeased, request)
	})
	if marked {
		s.tell(ctx)
	}
	return l, err
}

// tell announces a due row, unless the process has just done so.
func (s *Store) tell(ctx context.Context) {
	if s.announce() {
		_ = s.query(ctx, "announce", nil, nil) // if it fails the sweeper's next look finds the row
	}
}

func (s *Store) refuse(op string, why error, request journal.GUID) error {
	return fmt.Errorf("postgres: %s: %w: request %s", op, why, request)
}

// Keep implements store.Requests: a lease is held as long as the session of its process (E9, W8).
func (s *Store) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	err := s.call(ctx, "keep", func(c *conn) error {
		kept := false
		err := c.query(ctx, "lease_keep", func(v row) error {
			kept, l.Runs, l.Generation, l.Fence = true, int(v.int(0)), v.int(1), v.int(2)
			return nil
		}, pUUID(l.Job), pUUID(l.Request), pInt(int64(l.Turn)), pInt(l.Fence), pText(l.Holder), pInt(l.Session),
			pBool(l.Fresh))
		if err != nil || kept {
			return err
		}
		st, err := s.stands(ctx, c, l.Job, l.Request, l.Session)
		switch {
		case err != nil:
			return err
		case st.state.Closed():
			return s.refuse("keep", store.ErrJobClosed, l.Request)
		}
		return s.refuse("keep", store.ErrStale, l.Request)
	})
	if err == nil {
		l.Fresh = false
	}
	return l, err
}

// HandBack implements store.Requests. It raises the fence, so that the run writes no more (E9).
func (s *Store) HandBack(ctx context.Context, l store.Lease) error {
	met, err := s.change(ctx, "lease_return", pUUID(l.Job), pUUID(l.Request), pInt(int64(l.Turn)), pText(l.Holder), pBool(l.Looks))
	if err == nil && met == 0 {
		return s.refuse("hand back", store.ErrStale, l.Request)
	}
	if err == nil {
		s.tell(ctx)
	}
	return err
}

// Input implements store.Requests, for inputs that are too large for their message (T4).
func (s *Store) Input(ctx context.Context, job journal.JobID, request journal.GUID) ([]byte, error) {
	input, met, err := readOne(ctx, s, "row_input", func(v row) ([]byte, error) {
		return v.bytes(0), nil
	}, pUUID(job), pUUID(request))
	if err == nil && !met {
		err = s.refuse("input", store.ErrStale, request)
	}
	return input, err
}
