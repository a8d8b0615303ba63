package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
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
	s       *Store
	conn    *conn // nil until the next Load connects
	raw     *pgx.Conn
	session journal.GUID
	seq     int64
	term    int64 // of its last connection (S13)
	patient bool  // it waits for locks of others
	open    bool
	states  map[journal.JobID]*collation.State
	mail    *mail // mailboxes of the open transaction
	refs    []ref // outputs that are stored beside their entries and still to be read
	span    span  // what is read of the loaded jobs is in it
	locked  span  // of the jobs that the transaction has locked, so that none of them is moved
}

// Committer opens a committer on a connection of its own.
func (s *Store) Committer(ctx context.Context, patient bool) (store.Committer, error) {
	c := &committer{s: s, patient: patient}
	if err := c.connect(ctx); err != nil {
		return nil, classify("committer", err)
	}
	return c, nil
}

// connect opens a connection under a new session number.
func (c *committer) connect(ctx context.Context) error {
	session := newSession()
	w, raw, err := c.s.dial(ctx, session)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	if !c.patient {
		if err := w.query(ctx, "lock_timeout", nil, pText(lockTimeout)); err != nil {
			closeSoon(raw)
			return fmt.Errorf("%w: %w", errNotSent, err)
		}
	}
	if err := w.require(ctx, append(loadStatements, writeStatements...)...); err != nil {
		closeSoon(raw)
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	c.conn, c.raw, c.session, c.seq, c.term = w, raw, session, 0, w.term
	return nil
}

// ready connects if there is no connection that may be used.
func (c *committer) ready(ctx context.Context) error {
	if err := c.s.where.refused(); err != nil {
		c.drop()
		return err
	}
	if c.conn != nil && !c.conn.pg.IsClosed() && c.s.where.current(c.conn) == nil {
		return nil
	}
	c.drop()
	return c.connect(ctx)
}

// here says whether what was decided may be committed: the space is where it was.
func (c *committer) here() error {
	err := c.s.where.refused()
	if term := c.s.where.term.Load(); err == nil && c.term != term {
		c.term, err = term, errTerm
	}
	return err
}

// dial opens a connection outside the pool.
func (s *Store) dial(ctx context.Context, session journal.GUID) (*conn, *pgx.Conn, error) {
	cfg := s.pool.Config().ConnConfig
	cfg.RuntimeParams["application_name"] = applicationName(session)
	s.hosts.follow(cfg)
	term := s.where.term.Load()
	raw, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	w := wrap(raw)
	w.term = term
	return w, raw, nil
}

// closeSoon closes a connection without waiting long for the server.
func closeSoon(raw *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = raw.Close(ctx) // its transaction, if any, is rolled back by the server
}

// drop closes the connection; the next Load begins a new session.
func (c *committer) drop() {
	if c.raw != nil {
		closeSoon(c.raw)
	}
	c.conn, c.raw, c.open, c.states, c.mail, c.refs = nil, nil, false, nil, nil, nil
}

// Session returns the session number and the seq of its last commit.
func (c *committer) Session() (journal.GUID, int64) { return c.session, c.seq }

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
	b := c.conn.batch()
	b.queue("rollback")
	if err := b.send(ctx).close(); err != nil {
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
	if w.empty() {
		return c.Rollback(ctx)
	}
	c.open = true
	marker := marker{session: c.session, seq: c.seq + 1, pid: c.conn.pid, name: c.conn.name}
	ctx = context.WithoutCancel(ctx)
	w.announce = c.s.announces(w)
	err = c.s.commit(ctx, c.conn, marker, w)
	switch {
	case err == nil:
		c.seq = marker.seq
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
	b := c.batch()
	if c.idle() {
		b.queue("begin")
	}
	b.queue("write_marker", pUUID(m.session), pInt(m.seq), pInts(w.sessions...))
	w.queue(b)
	b.queue("commit")
	r := b.send(ctx)
	tag, born := "", []int64(nil)
	for _, name := range b.names {
		var visit func(row) error
		if name == "write_jobs_new" {
			visit = func(v row) error { born = v.numbers(0); return nil }
		}
		tag = r.each(visit)
	}
	err := r.close()
	if err == nil && tag != "COMMIT" {
		err = fmt.Errorf("%w: COMMIT was answered %s", errRolledBack, tag)
	}
	s.numbers.learn(w, born, err)
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
