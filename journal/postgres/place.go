package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quipu-journal/quipu/internal/store"
)

//go:embed place/place.sql
var placeText string

// site is a database as a connection finds it (S13).
type site struct {
	system, timeline int64 // of the server; timeline 0: it is a standby
	// accepted are those of the server on which the space was accepted last.
	accepted struct{ system, timeline int64 }
	mark     store.Mark
	halted   string // why nothing may be decided, as the space says; "" otherwise
	promote  bool   // a promotion is accepted beforehand
	chain    int64  // entries of the space's own chain
}

// another is a store.ErrAnotherDatabase with its own text.
type another struct{ why string }

func anotherf(format string, args ...any) error {
	return &another{"the database is another one: " + fmt.Sprintf(format, args...)}
}

// Error says why the database is another one, and what to do.
func (e *another) Error() string { return e.why }

// Is makes it an ErrAnotherDatabase and an ErrUnavailable.
func (e *another) Is(target error) bool {
	return target == store.ErrAnotherDatabase || target == store.ErrUnavailable
}

// elsewhere is the error of an operation that met another database, or one whose settings do not hold
// any more, without what was tried to connect; nil for other errors.
func elsewhere(op string, err error) error {
	if e, ok := errors.AsType[*another](err); ok {
		return fmt.Errorf("postgres: %s: %w", op, e)
	}
	if e, ok := errors.AsType[*brokenError](err); ok {
		return fmt.Errorf("postgres: %s: %w", op, e)
	}
	return nil
}

// advice ends every error about another database.
const advice = "; nothing is decided here before somebody runs `quipu recover` (docs/recover.md)"

// errStandby says that the server replays another one's log. It takes no writes, and whoever
// stayed connected would not notice its promotion.
var errStandby = errors.New("the server is a standby: connect to the primary")

// promoted says that the server is the cluster of the space on a later timeline.
func (p *site) promoted() bool {
	return p.system == p.accepted.system && p.timeline > p.accepted.timeline && p.halted == ""
}

// judge says why the database is not the one that the space was accepted in, or is older than one
// of the marks that were seen of it: store.ErrAnotherDatabase. A standby is errStandby.
func (p *site) judge(seen ...store.Mark) error {
	switch {
	case p.timeline == 0:
		return errStandby
	case p.halted != "":
		return &another{"the space is halted: " + p.halted + advice}
	case p.system != p.accepted.system:
		return anotherf("the space was accepted on cluster %d, and this is cluster %d"+advice, p.accepted.system, p.system)
	case p.timeline != p.accepted.timeline:
		return anotherf("the space was accepted on timeline %d of its cluster, and this is timeline %d: "+
			"a standby was promoted, or a backup restored"+advice, p.accepted.timeline, p.timeline)
	}
	return p.older(seen)
}

// older says that the database is older than a mark that was seen of it.
func (p *site) older(seen []store.Mark) error {
	for _, m := range seen {
		switch {
		case m.Space != p.mark.Space:
			return anotherf("the space had the id %s, and this one has %s: it was made anew"+advice, m.Space, p.mark.Space)
		case m.After(p.mark):
			return anotherf("epoch %d, beat %d of the space was seen, and it is at epoch %d, beat %d: "+
				"a backup was restored, or a standby lagged when it was promoted"+advice, m.Epoch, m.Beat, p.mark.Epoch, p.mark.Beat)
		}
	}
	return nil
}

// whereabouts are what a Store knows of the database that it works on. Its readers take no lock.
type whereabouts struct {
	mu    sync.Mutex // held by who changes it
	known atomic.Pointer[store.Mark]
	why   atomic.Pointer[error] // why the database is another one; nil: it is not
	// raised when another database is accepted; connections of an earlier term are not used
	term   atomic.Int64
	admits bool // commands that look, and `quipu recover`: every database is let in
}

// refused says that nothing may be read or written: store.ErrAnotherDatabase.
func (d *whereabouts) refused() error {
	if why := d.why.Load(); why != nil && !d.admits {
		return fmt.Errorf("%w: %w", errNotSent, *why)
	}
	return nil
}

// errTerm says that a connection was made before another database was accepted.
var errTerm = fmt.Errorf("%w: the space goes on in another database", errNotSent)

// seen notes a mark that the database had, so that it is never taken for an older one. It does
// not go back.
func (d *whereabouts) seen(m store.Mark) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.known.Load(); old == nil || m.Epoch == old.Epoch && m.After(*old) {
		d.known.Store(&m)
	}
}

// marks are those that this process has seen of the space, with another one that it was told.
func (d *whereabouts) marks(more ...store.Mark) []store.Mark {
	if known := d.known.Load(); known != nil {
		more = append(more, *known)
	}
	return more
}

// admitted is the key of a context whose connections are let in anywhere: they look.
type admitted struct{}

// compare is what every connection does first: it compares the server and the space with what
// this process knows. Where the schema does not exist, or may not be used, Open finds that out.
func (s *Store) compare(ctx context.Context, pg *pgconn.PgConn) error {
	marks := s.where.marks() // before the look: the database may be newer, never older
	p, err := s.inspect(ctx, pg)
	switch {
	case errors.Is(err, store.ErrSchema), err == nil && ctx.Value(admitted{}) != nil,
		forbidden(err) && s.where.known.Load() == nil:
		return nil
	case err != nil:
		return err
	}
	err = p.judge(marks...)
	if known := s.where.known.Load(); err == nil && known != nil && p.mark.Epoch > known.Epoch && !s.where.admits {
		err = &another{"the space was recovered in another database: this process is about to follow"}
	}
	if err == nil {
		s.where.seen(p.mark)
		return nil
	}
	if errors.Is(err, store.ErrAnotherDatabase) {
		s.leave(err)
	}
	if s.where.admits {
		return nil
	}
	return err
}

// inspect reads the site of a connection: store.ErrSchema where the schema does not exist.
func (s *Store) inspect(ctx context.Context, pg *pgconn.PgConn) (*site, error) {
	text := strings.ReplaceAll(placeText, "{schema}", pgx.Identifier{s.schema}.Sanitize())
	result := pg.ExecParams(ctx, text, nil, nil, nil, binary).Read()
	if result.Err != nil {
		return nil, fmt.Errorf("look which database this is: %w", classify("compare", result.Err))
	}
	if len(result.Rows) == 0 {
		return nil, fmt.Errorf("%w: the space has no row", store.ErrSchema)
	}
	v := row(result.Rows[0])
	p := &site{
		system: v.int(0), timeline: v.int(1), mark: store.Mark{Space: v.guid(4), Epoch: v.int(5), Beat: v.int(6)},
		halted: v.text(7), promote: v.bool(8), chain: v.int(9),
	}
	p.accepted.system, p.accepted.timeline = v.int(2), v.int(3)
	return p, nil
}

// leave notes that the database is another one, and gives the connections up.
func (s *Store) leave(why error) {
	s.where.mu.Lock()
	first := s.where.why.Swap(&why) == nil
	s.where.mu.Unlock()
	if first {
		s.reset()
	}
}

// accept goes on in the database that has the mark.
func (s *Store) accept(m store.Mark) {
	if s.cfg.Accepted != nil {
		s.cfg.Accepted(m.Epoch)
	}
	s.where.mu.Lock()
	s.where.known.Store(&m)
	s.where.term.Add(1)
	s.where.why.Store(nil)
	s.where.mu.Unlock()
	s.reset()
}

// reset closes the pooled connections, each as soon as it is given back.
func (s *Store) reset() {
	if s.where.admits {
		return
	}
	s.pool.Reset()
	if s.users != nil {
		s.users.Reset()
	}
}
