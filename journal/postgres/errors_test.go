package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
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
		{&pgconn.PgError{Code: "23505", TableName: "entries_0"}, store.ErrLost},
		{&pgconn.PgError{Code: "23514", DataTypeName: "activity_ledger", ConstraintName: "ledger_state"}, store.ErrLost},
		{&pgconn.PgError{Code: "23514", DataTypeName: "guid_ledger", ConstraintName: "receipt_steps"}, store.ErrLost},
		{&pgconn.PgError{Code: "23514", TableName: "instances_0", ConstraintName: "ledger_join"}, store.ErrLost},
		{&pgconn.PgError{Code: "23514", TableName: "receipts_12", ConstraintName: "receipt_stale"}, store.ErrLost},
		{&pgconn.PgError{Code: "23514", DataTypeName: "digest", ConstraintName: "digest_bytes"}, store.ErrRejected},
		{&pgconn.PgError{Code: "23514", TableName: "receipts"}, store.ErrPartition}, // no partition for the row
		{&pgconn.PgError{Code: "23514", TableName: "jobs", ConstraintName: "floor_check"}, store.ErrRejected},
		{&pgconn.PgError{Code: "22021"}, store.ErrRejected},
		{&pgconn.PgError{Code: "54000"}, store.ErrRejected},
		{&pgconn.PgError{Code: "40001"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "40P01"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "55P03"}, store.ErrBusy},
		{&pgconn.PgError{Code: "53100"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "42P01"}, store.ErrSchema},
		{&pgconn.PgError{Code: "28P01"}, store.ErrLogin},
		{&pgconn.PgError{Code: "28P01"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "3D000"}, store.ErrLogin},
		{&pgconn.PgError{Code: "3D000"}, store.ErrUnavailable},
		{io.ErrUnexpectedEOF, store.ErrUnavailable},
		{fmt.Errorf("%w: x", errCorrupt), store.ErrRejected},
	} {
		err := classify("test", c.err)
		require.ErrorIs(t, err, c.want)
		require.ErrorIs(t, err, c.err, "the cause is kept")
	}
}

// J4: the outcome of a commit is open only if the connection was lost or the server ended the
// session.
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

// C10: a retryable error is retried a bounded number of times.
func TestRetry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{store.ErrUnavailable, maxAttempts},
		{store.ErrUnknown, maxAttempts},
		{store.ErrLost, 1},
		{store.Login("refused"), 1},
		{nil, 1},
	} {
		calls := 0
		require.ErrorIs(t, retry(t.Context(), func() error { calls++; return c.err }), c.err)
		require.Equal(t, c.want, calls, "%v", c.err)
	}
}

// J4: an unknown outcome of one attempt stays unknown after later ones, unless one of them finds
// the work done. A caller who gets store.ErrUnavailable relies on it that nothing was committed
// (I9).
func TestRetryKeepsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	answers := []error{
		store.ErrUnknown, store.ErrUnavailable, store.ErrUnavailable, store.ErrUnavailable, store.ErrUnavailable,
	}
	attempt := 0
	err := retry(t.Context(), func() error { attempt++; return answers[attempt-1] })
	require.ErrorIs(t, err, store.ErrUnknown)
	require.NotErrorIs(t, err, store.ErrUnavailable)
	require.Equal(t, maxAttempts, attempt)

	ctx, cancel := context.WithCancel(t.Context())
	attempt = 0
	err = retry(ctx, func() error {
		if attempt++; attempt == 2 {
			cancel()
		}
		return answers[attempt-1]
	})
	require.ErrorIs(t, err, store.ErrUnknown)

	d, attempt := &doubt{}, 0 // over a test-and-set that was lost in between
	require.ErrorIs(t, d.combine(store.ErrUnknown), store.ErrUnknown)
	require.ErrorIs(t, d.combine(store.ErrLost), store.ErrLost)
	require.ErrorIs(t, d.combine(store.ErrUnavailable), store.ErrUnknown)

	require.NoError(t, retry(t.Context(), func() error {
		if attempt++; attempt == 1 {
			return store.ErrUnknown
		}
		return nil
	}))
}

// J4, I9: a start is committed, its answer is lost, and the database stays away, for the outcome
// and for another attempt. The caller must not be told that nothing was committed.
func TestI9StartOfUnknownOutcomeSaysSo(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	direct := openIn(t, dsn)
	p, through := through(t, dsn)
	s := openIn(t, through, func(c *Config) { c.ResolveTimeout = 50 * time.Millisecond })
	startJobs(t, s, "before")
	p.ResetAt("COMMIT\x00", func() { p.Refuse(); p.Reset() })
	_, err := s.driven().Start(t.Context(), []store.Start{{Flow: testFlow, Trigger: "start", Key: "k", Input: []byte(`{}`)}},
		collation.Mode{})
	require.ErrorIs(t, err, store.ErrUnknown)
	_, err = direct.FindJob(t.Context(), "k")
	require.NoError(t, err, "it was committed")
}
