package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// rollbackTimeout bounds a ROLLBACK. After that the connection is closed, which rolls back too.
const rollbackTimeout = 5 * time.Second

// lockTimeout is how long a batch waits for another transaction's lock (W3): longer than most of
// our transactions take, and short for the messages that wait.
const lockTimeout = "100ms"

// errNoTransaction says that Load was not called before.
var errNoTransaction = errors.New("postgres: no transaction: Load opens it")

// committer is one session on a connection of its own (L1).
type committer struct {
	line
	session journal.GUID
	seq     int64
	term    int64 // of its last connection (S13)
	patient bool  // it waits for locks of others
	open    bool
	states  map[journal.JobID]*collation.State
	mail    *mail            // mailboxes of the open transaction
	refs    []ref            // outputs that are stored beside their entries and still to be read
	span    span             // what is read of the loaded jobs is in it
	sent    []store.Outgoing // see Released
	locked  span             // of the jobs that the transaction has locked, so that none of them is moved
}

// Committer opens a committer on a connection of its own.
func (s *Store) Committer(ctx context.Context, patient bool) (store.Committer, error) {
	c := &committer{line: line{s: s}, patient: patient}
	if err := c.ready(ctx); err != nil {
		return nil, classify("committer", err)
	}
	return c, nil
}

// ready connects under a new session number if there is no connection that may be used.
func (c *committer) ready(ctx context.Context) error {
	before := c.conn
	if err := c.connect(ctx); err != nil || c.conn == before {
		return err
	}
	if !c.patient {
		if err := c.conn.run(ctx, setting("lock_timeout", lockTimeout, false)); err != nil {
			c.drop()
			return fmt.Errorf("%w: %w", errNotSent, err)
		}
	}
	c.session, c.seq, c.term = newSession(), 0, c.conn.term
	return nil
}

// here says whether what was decided may be committed: the space is where it was.
func (c *committer) here() error {
	err := c.s.refused()
	if term := c.s.where.term.Load(); err == nil && c.term != term {
		c.term, err = term, errTerm
	}
	return err
}

// drop closes the connection; the next Load begins a new session.
func (c *committer) drop() {
	c.line.drop()
	c.open, c.states, c.mail, c.refs = false, nil, nil, nil
}

// Session returns the session number and the seq of its last commit.
func (c *committer) Session() (journal.GUID, int64) { return c.session, c.seq }

// Released implements store.Committer.
func (c *committer) Released() []store.Outgoing { return c.sent }

// Close ends the session.
func (c *committer) Close() { c.drop() }

// Rollback ends the transaction without a trace.
func (c *committer) Rollback(ctx context.Context) error {
	if !c.open {
		return nil
	}
	c.open, c.states, c.mail, c.refs = false, nil, nil, nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if err := c.conn.query(ctx, "rollback", nil); err != nil {
		c.drop()
	}
	return nil
}

// Commit writes the plans and commits, in one round trip (J6). The transaction has ended,
// whatever the answer. The end of ctx does not cancel a running COMMIT (J4).
func (c *committer) Commit(ctx context.Context, plans []store.Chained) error {
	err := c.here()
	if err == nil && !c.open {
		err = c.ready(ctx)
	}
	if err != nil {
		c.drop() // an open transaction is rolled back
		return classify("commit", err)
	}
	w, err := c.s.merge(plans)
	if err != nil {
		_ = c.Rollback(ctx)
		return fmt.Errorf("postgres: commit: %w: %w", store.ErrRejected, err)
	}
	if c.sent = nil; w.empty() {
		return c.Rollback(ctx)
	}
	c.open = true
	marker := marker{session: c.session, seq: c.seq + 1, pid: c.conn.pid, name: c.conn.name}
	ctx = context.WithoutCancel(ctx)
	w.announce = c.s.announces(w)
	err = c.s.commit(ctx, c.conn, marker, w)
	switch {
	case err == nil:
		c.seq, c.sent = marker.seq, w.released
		c.open, c.states, c.mail = false, nil, nil
		return nil
	case !undecided(err):
		c.s.moved(err)
		_ = c.Rollback(ctx)
		return w.lost(classify("commit", c.blame(ctx, w, err)))
	}
	c.drop()
	if err := c.s.resolve(ctx, marker, err); err != nil {
		return err
	}
	c.seq = marker.seq
	return nil
}

// commit sends marker, writes and COMMIT as one batch, in the transaction that is open on the
// connection or else in a new one. Its error is not classified.
func (s *Store) commit(ctx context.Context, c *conn, m marker, w *writes) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CommitTimeout)
	defer cancel()
	s.numbers.fill(w)
	var b batch
	if c.idle() {
		b.queue("begin")
	}
	b.queue("write_marker", pUUID(m.session), pInt(m.seq), pInts(w.sessions...))
	w.queue(&b)
	b.queue("commit")
	err := c.run(ctx, b...)
	s.numbers.learn(w, err)
	return err
}

// conclude commits a transaction of the pool under a marker of its own, by which an unknown
// outcome is found out (J4).
func (s *Store) conclude(ctx context.Context, c *conn, w *writes) error {
	m := marker{session: newSession(), seq: 1, pid: c.pid, name: c.name}
	ctx = context.WithoutCancel(ctx)
	err := s.commit(ctx, c, m, w)
	switch {
	case err == nil:
		return nil
	case undecided(err):
		return s.resolve(ctx, m, err)
	}
	abandon(ctx, c)
	return classify("commit", err)
}
