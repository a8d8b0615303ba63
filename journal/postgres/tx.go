package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Tx is a transaction of the caller's own, of pgx.Conn, pgxpool or a savepoint
// of either, on the database of the space (E17).
type Tx = pgx.Tx

// Transaction is what StartTx and SignalTx act in: a Tx, or the EffectTx of a Tx
// effect, with which the job or the signal commits then, or not at all. These
// methods are those that the two share.
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
// Afterwards the transaction's settings are as before, and nothing is prepared
// on its connection. After an error what do did is rolled back, to a savepoint of
// its own, and the transaction can go on. Nothing else is retried, since the
// transaction is the caller's: store.ErrUnavailable asks to retry it as a whole, as
// 40001 under REPEATABLE READ does. The caller's role needs the rights of the
// engine's.
//
// A start of a key that another transaction is just starting waits for that one to
// end. Callers who start the same keys in different orders can wait for each other,
// which the server resolves: store.ErrUnavailable.
func (s *Store) Join(ctx context.Context, tx any, do func(store.Tx) error) error {
	t, ok := tx.(Transaction)
	if !ok {
		return rejected("transaction", misuse("a %T is no pgx.Tx, and not the EffectTx that the body of an effect was given", tx))
	}
	return s.within(ctx, t, "join", func(g *callerTx) error { return do(joined{s, g}) })
}

// joined is a transaction of somebody else's, as those see it who take part.
type joined struct {
	s *Store
	g *callerTx
}

// Load implements store.Tx, for starts and signals.
func (j joined) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	w, _ := gather(wants)
	loaded := &store.Loaded{Holders: map[string]*collation.Holder{}, Known: map[journal.GUID]store.SignalState{}}
	here := false
	space := step{"tx_space", nil, func(v row) error { id := j.s.space.Load(); here = id != nil && *id == v.guid(0); return nil }}
	clock := step{"clock", nil, func(v row) error { loaded.Now = collation.Micros(v.int(0)); return nil }}
	err := j.g.enter(ctx, append(append([]step{space, clock}, w.readStarts(loaded, wait)...), w.readMail(loaded)...)...)
	if !here && (err == nil || errors.Is(kindOf(err), store.ErrSchema)) {
		return nil, store.Rejected(fmt.Sprintf("the transaction is on another database than the space %q: "+
			"take one on the database that the Runtime was opened with", j.s.cfg.Space))
	}
	return loaded, err
}

// Commit implements store.Tx.
func (j joined) Commit(ctx context.Context, plans []store.Chained) error {
	w, err := merge(plans)
	if err != nil {
		return rejected("join", err)
	}
	w.announce = j.s.announces(w)
	return w.lost(classify("join", j.g.write(ctx, w)))
}

// callerTx is a call inside a transaction that is not ours.
type callerTx struct {
	c     *conn
	home  string // search path of the space
	path  string // search path of the transaction
	wrote bool   // something is to be kept
}

// within runs a call inside the transaction, under a savepoint of its own: what
// it does not write it leaves no trace of. A lost test-and-set, of a key that
// another transaction took meanwhile, is decided again (C3).
func (s *Store) within(ctx context.Context, tx Transaction, op string, call func(*callerTx) error) (err error) {
	for range maxAttempts {
		if err = s.visit(ctx, tx, call); err != nil && !classified(err) {
			err = classify(op, err) // nothing is committed here
		}
		if !errors.Is(err, store.ErrLost) {
			return err
		}
	}
	if lost, named := errors.AsType[*store.LostError](err); named && len(lost.Flows) > 0 {
		return err
	}
	// What the transaction cannot see stands in its way, as it does in a snapshot.
	return fmt.Errorf("postgres: %s: %w: %v", op, store.ErrUnavailable, err) //nolint:errorlint // it is decided: the caller repeats his transaction
}

func (s *Store) visit(ctx context.Context, tx Transaction, call func(*callerTx) error) (err error) {
	var savepoint savepoint
	switch tx := tx.(type) {
	case Tx:
		savepoint, err = tx.Begin(ctx)
	case *handle:
		if err := tx.use(); err != nil {
			return rejected("transaction", err)
		}
		defer func() { tx.used(err) }()
		savepoint, err = tx.savepoint(ctx)
	default:
		err = misuse("a %T is no pgx.Tx, and not the EffectTx that the body of an effect was given", tx)
	}
	if errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, ErrEffectTx) {
		return rejected("transaction", err)
	}
	if err != nil {
		return err
	}
	g := &callerTx{
		c:    &conn{pg: savepoint.Conn().PgConn(), types: &s.types},
		home: s.home(),
	}
	if err = call(g); err == nil && g.wrote {
		return savepoint.Commit(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	return errors.Join(err, savepoint.Rollback(ctx))
}

// savepoint is a part of a transaction: a pgx.Tx, or one of an effect's.
type savepoint interface {
	Conn() *pgx.Conn
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// home is the search path of the space inside a transaction that others write
// in, too: without pg_temp at its end, a temporary table of theirs would come
// first.
func (s *Store) home() string { return pgx.Identifier{s.schema}.Sanitize() + ", pg_temp" }

// enter reads, with the tables of the space in sight.
func (g *callerTx) enter(ctx context.Context, steps ...step) error {
	look := step{"tx_enter", [][]byte{pText(g.home)}, func(v row) error { g.path = v.text(0); return nil }}
	return g.c.run(ctx, append([]step{look}, steps...)...)
}

// write writes, and gives the transaction its search path back. Nothing is taken for a
// session here, since no marker compares it.
func (g *callerTx) write(ctx context.Context, w *writes) error {
	if len(w.sessions) > 0 {
		return fmt.Errorf("%w: a caller's transaction takes something for a session", store.ErrRejected)
	}
	b := g.c.batch()
	w.queue(b)
	b.queue("tx_leave", pText(g.path))
	g.wrote = true
	return b.send(ctx).close()
}
