package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
)

// Tx is the caller's own transaction on the database of the space, of a pgx.Conn, a pgxpool, or a
// savepoint of either (E17).
type Tx = pgx.Tx

// Transaction is what StartTx and SignalTx write in: a Tx, or the EffectTx of a Tx effect, with
// which the job or the signal then commits. These methods are those that both have.
type Transaction interface {
	// Exec is that of pgx.Tx.
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	// Query is that of pgx.Tx.
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	// QueryRow is that of pgx.Tx.
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	// CopyFrom is that of pgx.Tx.
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
}

// Join implements store.Joiner: tx is a Transaction.
//
// It leaves the transaction's settings unchanged and nothing prepared on its connection. After an
// error the writes of do are rolled back to a savepoint, and the transaction can go on. Apart
// from lost test-and-sets it retries nothing, since the transaction is the caller's: after
// store.ErrUnavailable, also for 40001 under REPEATABLE READ, the caller retries it as a whole. A
// transaction that is closed or nil, or that an earlier error has aborted, is store.ErrRejected.
// The caller's role needs the rights to what do writes: for an inception those of the engine's role.
//
// A start waits for another transaction that is starting the same key. Callers who start the same
// keys in different orders may deadlock; the server then fails one of them, with
// store.ErrUnavailable.
func (s *Store) Join(ctx context.Context, tx any, do func(store.Tx) error) error {
	t, ok := tx.(Transaction)
	if !ok {
		if tx == nil {
			return store.Rejected("the transaction is nil")
		}
		return store.RejectedFor(misuse("a %T is no pgx.Tx, and not the EffectTx that the body of an effect was given", tx))
	}
	if err := s.refused(); err != nil {
		return settle("join", err)
	}
	return s.within(ctx, t, "join", func(g *callerTx) error { return do(joined{s, g}) })
}

// joined is a caller's transaction as a store.Tx.
type joined struct {
	s *Store
	g *callerTx
}

// Load implements store.Tx, for starts and signals.
func (j joined) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	w, _ := gather(wants)
	loaded := &store.Loaded{Holders: map[string]*collation.Holder{}, Known: map[collation.RowKey]store.SignalState{}}
	here, accepted, known := false, true, j.s.where.known.Load()
	space := step{"tx_space", nil, func(v row) error {
		here = known != nil && known.Space == v.guid(0)
		accepted = here && known.Epoch == v.int(1) && v.bool(2)
		return nil
	}}
	err := j.g.enter(ctx,
		append(append([]step{space, clock(&loaded.Now)}, j.s.readStarts(w, loaded, wait)...), w.readMail(loaded)...)...)
	if here && !accepted {
		return nil, anotherf("the transaction is not where the space goes on: begin it again" + advice)
	}
	if !here && (err == nil || errors.Is(kindOf(err), store.ErrSchema)) {
		return nil, store.Rejected(fmt.Sprintf("the transaction is on another database than the space %q: "+
			"take one on the database that the Runtime was opened with", j.s.cfg.Space))
	}
	return loaded, err
}

// Commit implements store.Tx.
func (j joined) Commit(ctx context.Context, plans []store.Chained) error {
	w, err := j.s.merge(plans)
	if err != nil {
		return rejected("join", err)
	}
	w.announce = j.s.announces(w)
	return w.lost(classify("join", j.g.write(ctx, w)))
}

// callerTx is a call inside a caller's transaction.
type callerTx struct {
	c     *conn
	home  string // search path of the space
	path  string // search path of the transaction
	wrote bool   // something was written
}

// within runs a call inside the transaction, under a savepoint. It leaves no trace besides its
// writes. If a test-and-set lost, as when another transaction took the key meanwhile, it decides
// again (C3).
func (s *Store) within(ctx context.Context, tx Transaction, op string, call func(*callerTx) error) (err error) {
	for range maxAttempts {
		if err = s.visit(ctx, tx, call); err != nil && !classified(err) {
			err = classify(op, err) // within does not commit
		}
		if !errors.Is(err, store.ErrLost) {
			return err
		}
	}
	if lost, named := errors.AsType[*store.LostError](err); named && len(lost.Flows) > 0 {
		return err
	}
	// Rows that the transaction cannot see keep conflicting, as in a snapshot. After the last
	// attempt the caller repeats the whole transaction.
	return fmt.Errorf("postgres: %s: %w: %v", op, store.ErrUnavailable, err) //nolint:errorlint // its class is the first
}

func (s *Store) visit(ctx context.Context, tx Transaction, call func(*callerTx) error) (err error) {
	var savepoint savepoint
	switch tx := tx.(type) {
	case Tx:
		savepoint, err = tx.Begin(ctx)
	case *handle:
		if err := tx.use(); err != nil {
			return store.RejectedFor(err)
		}
		defer func() { tx.used(err) }()
		savepoint, err = tx.savepoint(ctx)
	default:
		err = misuse("a %T is no pgx.Tx, and not the EffectTx that the body of an effect was given", tx)
	}
	if err != nil {
		return unusable(err)
	}
	g := &callerTx{
		c:    &conn{pg: savepoint.Conn().PgConn()},
		home: s.home(),
	}
	if err = call(g); err == nil && g.wrote {
		return savepoint.Commit(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	return errors.Join(err, savepoint.Rollback(ctx))
}

// unusable says what is wrong with a transaction in which nothing can be begun. What is over, or
// misused, stays so: only another transaction helps.
func unusable(err error) error {
	pg := serverError(err)
	switch {
	case errors.Is(err, pgx.ErrTxClosed):
		return store.RejectedFor(fmt.Errorf("the transaction is closed: %w", err))
	case pg != nil && pg.Code == "25P02":
		return store.RejectedFor(fmt.Errorf("the transaction is aborted by an earlier error: roll it back: %w", err))
	case errors.Is(err, ErrEffectTx):
		return store.RejectedFor(err)
	}
	return err
}

// savepoint is a savepoint of a pgx.Tx or of an effect's transaction.
type savepoint interface {
	Conn() *pgx.Conn
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// home is the search path of the space inside a transaction that others write in, too. pg_temp
// comes last, so that their temporary tables do not hide ours.
func (s *Store) home() string { return pgx.Identifier{s.schema}.Sanitize() + ", pg_temp" }

// enter reads with the tables of the space on the search path.
func (g *callerTx) enter(ctx context.Context, steps ...step) error {
	look := step{"tx_enter", [][]byte{pText(g.home)}, func(v row) error { g.path = v.text(0); return nil }}
	return g.c.run(ctx, append([]step{look}, steps...)...)
}

// write writes, and resets the transaction's search path. It takes nothing for a session, since
// no marker checks the session here.
func (g *callerTx) write(ctx context.Context, w *writes) error {
	if len(w.sessions) > 0 {
		return fmt.Errorf("%w: a caller's transaction takes something for a session", store.ErrRejected)
	}
	var b batch
	w.queue(&b)
	g.wrote = true
	return g.c.run(ctx, append(b, setting("search_path", g.path, true))...)
}
