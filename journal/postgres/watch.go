package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/internal/store"
)

// Another says why the database is another one than the space's (S13), as far as this process
// knows; nil: it is not. The error is store.ErrAnotherDatabase.
func (s *Store) Another() error {
	if why := s.where.why.Load(); why != nil {
		return *why
	}
	return nil
}

// WatchResult is the answer of Watch.
type WatchResult struct {
	// Mark is the newest of the database, for the witness in NATS; zero where the database is
	// another one.
	Mark store.Mark
	// Accepted says that the process goes on after another database was noticed, or in an epoch
	// that it did not know: what it has read before counts no more.
	Accepted bool
	// Chain is how many entries the space's own chain has. Where it has grown, somebody has
	// decided about the space: about its keys, too (S1).
	Chain int64
}

// Watch compares the database with what this process knows of it, and with the newest mark that
// was left outside; zero for none (S13). If the database is another one, the store refuses
// everything until Watch finds that it was accepted. The error is then store.ErrAnotherDatabase.
// With beat the space's beat is raised, and what the database cannot say of itself is written
// into it: it is older than it was.
func (s *Store) Watch(ctx context.Context, beat bool, left store.Mark) (w WatchResult, err error) {
	work := func(c *conn) (err error) {
		if err = s.settings.refused(); err == nil {
			w, err = s.watch(ctx, c, beat, left)
		}
		return err
	}
	if s.refused() == nil {
		err = s.with(ctx, func(c *conn) error {
			if err := s.resettle(ctx, c); err != nil {
				return err
			}
			return work(c)
		})
	} else { // what was true of an open connection may be true no more
		err = s.onOwnConnection(ctx, work)
	}
	return w, settle("watch", err)
}

// apart lends a new connection, which is let in anywhere.
func (s *Store) onOwnConnection(ctx context.Context, call func(*conn) error) error {
	c, err := s.dial(context.WithValue(ctx, admitted{}, true))
	if err != nil {
		return err
	}
	defer c.leave()
	return call(c)
}

func (s *Store) watch(ctx context.Context, c *conn, beat bool, left store.Mark) (w WatchResult, err error) {
	marks := s.where.marks() // before the look: the database may be newer, never older
	if beat && s.Another() == nil {
		if w, err := s.beat(ctx, c, left); err == nil && w.Mark.Beat != 0 {
			return w, nil
		}
	}
	p, err := s.inspect(ctx, c.pg)
	if err != nil {
		return w, err
	}
	if left.Space == p.mark.Space {
		marks = append(marks, left)
	}
	err = p.judge(marks...)
	if err != nil && beat && p.promote && p.promoted() && p.older(marks) == nil {
		if p, err = s.promote(ctx, c, p); err == nil {
			err = p.judge(marks...)
		}
	}
	if errors.Is(err, store.ErrAnotherDatabase) {
		s.leave(err)
		if beat && p.halted == "" && p.older(marks) != nil {
			s.halt(ctx, c, p, err)
		}
	}
	if err != nil {
		return w, err
	}
	return s.finishWatch(ctx, c, p, beat)
}

// finishWatch is the end of a look that found the space's database.
func (s *Store) finishWatch(ctx context.Context, c *conn, p *site, beat bool) (w WatchResult, err error) {
	known := s.where.known.Load()
	if w.Accepted = known == nil || p.mark.Epoch > known.Epoch || s.Another() != nil; w.Accepted {
		s.accept(p.mark)
	}
	if s.where.seen(p.mark); beat {
		var b WatchResult
		b, err = s.beat(ctx, c, store.Mark{})
		w.Mark, w.Chain = b.Mark, b.Chain
	}
	if w.Mark.Beat == 0 {
		w.Mark, w.Chain = p.mark, p.chain
	}
	return w, err
}

// beat raises the beat where the space goes on as this process knows it, and returns the new mark.
// It is zero where anything differs, or another process is just doing it: then a look says which.
func (s *Store) beat(ctx context.Context, c *conn, left store.Mark) (w WatchResult, err error) {
	known := s.where.known.Load()
	if known == nil || left.Space == known.Space && left.Epoch > known.Epoch {
		return w, nil
	}
	newest := *known
	if left.After(newest) {
		newest = left
	}
	err = c.query(ctx, "place_beat", func(v row) error {
		w = WatchResult{Mark: store.Mark{Space: newest.Space, Epoch: newest.Epoch, Beat: v.int(0)}, Chain: v.int(1)}
		s.where.seen(w.Mark)
		return nil
	}, pUUID(newest.Space), pInt(newest.Epoch), pInt(newest.Beat))
	return w, err
}

// promote accepts a promotion that was allowed beforehand. Another process may do it first.
func (s *Store) promote(ctx context.Context, c *conn, p *site) (*site, error) {
	if err := c.query(ctx, "place_promote", nil, pInt(p.mark.Epoch), pInt(p.accepted.timeline)); err != nil {
		return p, fmt.Errorf("accept the promotion: %w", err)
	}
	s.log.Warn("a promotion was accepted, as the space allows beforehand: the epoch is raised", "timeline", p.timeline, "epoch", p.mark.Epoch+1)
	return s.inspect(ctx, c.pg)
}

// halt tells the processes that cannot know it themselves.
func (s *Store) halt(ctx context.Context, c *conn, p *site, why error) {
	if err := c.query(ctx, "place_halt", nil, pInt(p.mark.Epoch), pText(strings.TrimSuffix(why.Error(), advice))); err != nil {
		s.log.Warn("the space could not be marked as halted; processes without NATS do not notice", "error", err)
	}
}
