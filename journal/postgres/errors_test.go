package postgres

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal/store"
)

// J4: each SQLSTATE has its place in the failure contract.
func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want error
	}{
		{&pgconn.PgError{Code: "22P02", Message: `invalid input syntax for type integer: "quipu: lost rows, deleted 0"`}, store.ErrLost},
		{&pgconn.PgError{Code: "22P02", Message: `invalid input syntax for type integer: "x"`}, store.ErrRejected},
		{&pgconn.PgError{Code: "23505", TableName: "entries"}, store.ErrLost},
		{&pgconn.PgError{Code: "23514", TableName: "instances"}, store.ErrLost},
		{&pgconn.PgError{Code: "23514", TableName: "receipts"}, store.ErrLost},
		{&pgconn.PgError{Code: "23514", TableName: "jobs"}, store.ErrRejected},
		{&pgconn.PgError{Code: "22021"}, store.ErrRejected},
		{&pgconn.PgError{Code: "54000"}, store.ErrRejected},
		{&pgconn.PgError{Code: "40001"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "40P01"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "55P03"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "53100"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "42P01"}, store.ErrSchema},
		{io.ErrUnexpectedEOF, store.ErrUnavailable},
		{fmt.Errorf("%w: x", errCorrupt), store.ErrRejected},
	} {
		err := classify("test", c.err)
		require.ErrorIs(t, err, c.want)
		require.ErrorIs(t, err, c.err, "the cause is kept")
	}
}

// J4: only a lost connection, or a server that ends the session, leaves open
// what became of a commit.
func TestUndecided(t *testing.T) {
	t.Parallel()
	for _, decided := range []error{
		&pgconn.PgError{Severity: "ERROR", Code: "40001"}, fmt.Errorf("%w: x", errNotSent), errRolledBack, errCorrupt,
	} {
		require.False(t, undecided(decided), "%v", decided)
	}
	for _, open := range []error{
		io.ErrUnexpectedEOF, errors.New("broken pipe"), &pgconn.PgError{Severity: "FATAL", Code: "57P01"},
		&pgconn.PgError{SeverityUnlocalized: "PANIC", Code: "XX000"},
	} {
		require.True(t, undecided(open), "%v", open)
	}
}

// C10: what is retryable is repeated, a bounded number of times.
func TestRetry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{{store.ErrUnavailable, maxTries}, {store.ErrUnknown, maxTries}, {store.ErrLost, 1}, {nil, 1}} {
		calls := 0
		require.ErrorIs(t, retry(t.Context(), func() error { calls++; return c.err }), c.err)
		require.Equal(t, c.want, calls, "%v", c.err)
	}
}
