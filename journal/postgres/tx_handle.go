package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// EffectTx is the transaction in which the body of a Tx effect writes (E3): a quipu.EffectTx, which
// says what each method does.
type EffectTx interface {
	Transaction

	// Batch sends many statements in one round trip.
	Batch(ctx context.Context, b *pgx.Batch) error
	// Savepoint runs fn in a savepoint.
	Savepoint(ctx context.Context, fn func(ctx context.Context) error) error
}

// ErrEffectTx is wrapped by errors about a misused EffectTx, and by the failure of the effect.
var ErrEffectTx = errors.New("misuse of the transaction of an effect")

func misuse(format string, a ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrEffectTx}, a...)...)
}

// handle is the EffectTx of one run of one effect.
type handle struct {
	conn *pgx.Conn

	mu     sync.Mutex // locked during each call; a second goroutine finds it locked
	over   error      // why it can no longer be used
	fault  error      // the misuse that fails the effect, whatever its body returns
	again  error      // a failure after which everything runs again (J4)
	failed error      // the last statement that failed
}

var _ EffectTx = (*handle)(nil)

// use locks the handle for one call.
func (h *handle) use() error {
	if !h.mu.TryLock() {
		return misuse("it is used by two goroutines at once")
	}
	if h.over != nil {
		h.mu.Unlock()
		return h.over
	}
	return nil
}

// used ends a call and records what its error says of the transaction.
func (h *handle) used(err error) {
	if err != nil {
		h.failed = err
	}
	switch {
	case h.conn.IsClosed():
		h.again = fmt.Errorf("the connection was lost: %w", err)
	case repeatable(err):
		h.again = err
	case h.conn.PgConn().TxStatus() == 'I':
		h.fault = misuse("a statement ended the transaction")
		h.over = h.fault
	}
	h.mu.Unlock()
}

// Exec implements EffectTx.
func (h *handle) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	// pgx.Conn.Exec would send a text without arguments by the simple protocol, which allows
	// several statements.
	rows, err := h.Query(ctx, sql, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	rows.Close()
	return rows.CommandTag(), rows.Err()
}

// Query implements EffectTx.
func (h *handle) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := allowed(sql, args); err != nil {
		return &noRows{err: err}, err
	}
	if err := h.use(); err != nil {
		return &noRows{err: err}, err
	}
	rows, err := h.conn.Query(ctx, sql, args...)
	h.used(err)
	return &openRows{Rows: rows, h: h}, err
}

// QueryRow implements EffectTx.
func (h *handle) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := h.Query(ctx, sql, args...)
	return &oneRow{rows: rows, err: err}
}

// CopyFrom implements EffectTx.
func (h *handle) CopyFrom(
	ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource,
) (int64, error) {
	if err := h.use(); err != nil {
		return 0, err
	}
	n, err := h.conn.CopyFrom(ctx, table, columns, rows)
	h.used(err)
	return n, err
}

// Batch implements EffectTx.
func (h *handle) Batch(ctx context.Context, b *pgx.Batch) error {
	for _, q := range b.QueuedQueries {
		if err := allowed(q.SQL, q.Arguments); err != nil {
			return err
		}
	}
	if err := h.use(); err != nil {
		return err
	}
	err := h.conn.SendBatch(ctx, b).Close()
	h.used(err)
	return err
}

// nested is a savepoint of a handle that a call has locked.
type nested struct{ h *handle }

func (h *handle) savepoint(ctx context.Context) (savepoint, error) {
	return nested{h}, h.each(ctx, "SAVEPOINT quipu_caller")
}

// each runs our own statements while the handle is locked.
func (h *handle) each(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if _, err := h.conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// Conn implements savepoint.
func (n nested) Conn() *pgx.Conn { return n.h.conn }

// Commit implements savepoint.
func (n nested) Commit(ctx context.Context) error {
	return n.h.each(ctx, "RELEASE SAVEPOINT quipu_caller")
}

// Rollback implements savepoint.
func (n nested) Rollback(ctx context.Context) error {
	return n.h.each(ctx, "ROLLBACK TO SAVEPOINT quipu_caller", "RELEASE SAVEPOINT quipu_caller")
}

// Savepoint implements EffectTx.
func (h *handle) Savepoint(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	// One name is enough: a new savepoint hides older ones of its name.
	if err := h.say(ctx, "SAVEPOINT quipu_nested"); err != nil {
		return err
	}
	returned := false
	defer func() {
		if returned && err == nil {
			return
		}
		err = errors.Join(err, h.say(context.WithoutCancel(ctx), "ROLLBACK TO SAVEPOINT quipu_nested", "RELEASE SAVEPOINT quipu_nested"))
	}()
	if err = fn(ctx); err == nil {
		err = h.say(ctx, "RELEASE SAVEPOINT quipu_nested")
	}
	returned = true
	return err
}

// say runs our own statements.
func (h *handle) say(ctx context.Context, statements ...string) (err error) {
	if err := h.use(); err != nil {
		return err
	}
	defer func() { h.used(err) }()
	return h.each(ctx, statements...)
}

// errOver is the error of a handle whose effect has ended.
var errOver = misuse("its effect has ended")

// end takes the handle from the body, which has returned, and reports a transaction that the body
// left in a bad state.
func (h *handle) end() error {
	if !h.mu.TryLock() {
		_ = h.conn.PgConn().Conn().Close() // ends the running statement
		h.mu.Lock()
		h.fault = misuse("the body returned while another goroutine used it")
	}
	defer h.mu.Unlock()
	if h.over == nil {
		h.over = errOver
	}
	if h.fault == nil && !h.conn.IsClosed() && h.conn.PgConn().IsBusy() {
		h.fault = misuse("the body returned and left rows open: read them to the end, or close them")
	}
	return h.fault
}

// noRows are the rows of a query that was refused: they only return its error.
type noRows struct {
	pgx.Rows
	err error
}

func (r *noRows) Next() bool                                   { return false }
func (r *noRows) Close()                                       {}
func (r *noRows) Err() error                                   { return r.err }
func (r *noRows) Scan(...any) error                            { return r.err }
func (r *noRows) Values() ([]any, error)                       { return nil, r.err }
func (r *noRows) RawValues() [][]byte                          { return nil }
func (r *noRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (r *noRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r *noRows) Conn() *pgx.Conn                              { return nil }
func (r *noRows) TypeMap() *pgtype.Map                         { return nil }

// openRows are rows that are read under the handle's lock.
type openRows struct {
	pgx.Rows
	h *handle
}

// Next implements pgx.Rows.
func (r *openRows) Next() bool {
	if r.h.use() != nil {
		return false
	}
	more := r.Rows.Next()
	r.h.used(r.Rows.Err())
	return more
}

// Close implements pgx.Rows.
func (r *openRows) Close() {
	if r.h.use() != nil {
		return
	}
	r.Rows.Close()
	r.h.used(r.Rows.Err())
}

// Err implements pgx.Rows.
func (r *openRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.h.ended()
}

// Conn implements pgx.Rows. It returns nil: the body must not have the connection.
func (r *openRows) Conn() *pgx.Conn { return nil }

// ended returns why the handle can no longer be used.
func (h *handle) ended() error {
	if err := h.use(); err != nil {
		return err
	}
	h.mu.Unlock()
	return nil
}

// oneRow is the result of a QueryRow.
type oneRow struct {
	rows pgx.Rows
	err  error
}

// Scan implements pgx.Row.
func (r *oneRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}

// Borrow runs the body of a Tx effect in a savepoint of the caller's own transaction, with the
// same rules. It serves tests of handlers without a job (E14).
func Borrow(ctx context.Context, tx Tx, fn func(ctx context.Context, tx EffectTx) error) error {
	h := &handle{conn: tx.Conn()}
	err := h.Savepoint(ctx, func(ctx context.Context) error { return fn(ctx, h) })
	return errors.Join(err, h.end())
}
