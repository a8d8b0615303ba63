package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/store"
)

// errNotSent says that the connection failed before anything was sent. Only our own marks count:
// pgconn.SafeToRetry also says yes for some connections that broke while an answer was read.
var errNotSent = errors.New("not connected")

// errRolledBack says that the server ended the transaction without committing.
var errRolledBack = errors.New("the transaction was rolled back")

// errCorrupt says that a stored entry cannot be read: a fault of one job, not of the database.
var errCorrupt = errors.New("a stored entry cannot be read")

// Codes of errors; after the first four a connection is not used again.
const (
	readOnly       = "25006"
	recovering     = "0A000" // a standby refuses BEGIN READ WRITE; also a plan of before a migration
	noStatement    = "26000"
	statementTwice = "42P05"
	noRight        = "42501"
	noColumn       = "42703"
)

// pooled says what to do about a pooler whose connections are no sessions (S6).
const pooled = "the database is behind a pooler that gives each transaction another connection " +
	"(PgBouncer: pool_mode = transaction, or statement), and Quipu needs sessions: " +
	"set pool_mode = session for this database, or connect to the server itself"

// lostPrefix begins the message of a lost test-and-set; the statement itself raises it (J6).
const lostPrefix = `"quipu: lost`

// classify maps a database error to the failure contract of package store, for a caller that
// knows that nothing was committed.
func classify(op string, err error) error {
	if err == nil {
		return nil
	}
	if other := elsewhere(op, err); other != nil {
		return other
	}
	return fmt.Errorf("postgres: %s: %w: %w", op, kindOf(err), err)
}

// kindOf maps SQLSTATEs as rule J4 says. An unknown one is trouble with the infrastructure: it is
// retried with backoff, and never a business error (C10).
func kindOf(err error) error {
	if _, changed := errors.AsType[*store.ChangedError](err); changed || errors.Is(err, errCorrupt) {
		return store.ErrRejected
	}
	pg := serverError(err)
	switch {
	case errors.Is(err, errPooled):
		return store.Login(pooled)
	case untrusted(err):
		return store.Login("the certificate of the database's server is not accepted")
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return store.Unavailable("no host of the connection string takes writes")
	case errors.Is(err, context.Canceled):
		return store.Unavailable("the call was cancelled")
	case pg == nil:
		return store.ErrUnavailable
	}
	ledger := pg.DataTypeName == "activity_ledger" || pg.DataTypeName == "guid_ledger" ||
		strings.HasPrefix(pg.TableName, "instances_") || strings.HasPrefix(pg.TableName, "receipts_") // their partitions
	switch class := pg.Code[:min(2, len(pg.Code))]; {
	case pg.Code == "23514" && pg.ConstraintName == "":
		return store.ErrPartition // all checks have names, a missing partition has none
	case pg.Code == "22P02" && strings.Contains(pg.Message, lostPrefix),
		pg.Code == "23505",
		pg.Code == "23514" && ledger:
		return store.ErrLost
	case codes[pg.Code] != nil:
		return codes[pg.Code]
	case pg.Code == "08P01" && strings.Contains(pg.Message, "startup parameter"):
		return store.Login("a pooler refuses a setting of the connection string: take it out, and set it with ALTER ROLE … SET")
	case class == "28": // invalid authorization
		return store.Login("the database refuses the user or the password")
	case pg.Code == "3D000": // invalid catalog name
		return store.Login(noDatabase(err))
	case class == "22", class == "23", class == "54":
		return store.ErrRejected
	}
	return store.ErrUnavailable
}

// codes are the kinds of errors whose code says all.
var codes = map[string]error{
	"55P03":        store.ErrBusy,
	readOnly:       store.Unavailable("the server takes no writes: it is a standby, or default_transaction_read_only is on"),
	recovering:     store.Unavailable("the server cannot do that: it is a standby, or its schema has just changed"),
	noStatement:    store.Unavailable("a prepared statement is gone: " + pooled),
	statementTwice: store.Unavailable("a pooler gives out connections that somebody used before: set PgBouncer's server_reset_query = DISCARD ALL"),
	noRight:        store.Login("this login has no right to that: give it the role of the space that has it (`quipu grant ROLE LOGIN`), or use another login"),
	"42P01":        store.ErrSchema,
	noColumn:       store.ErrSchema,
	"3F000":        store.ErrSchema,
	"42883":        store.ErrSchema,
	"42P07":        errTaken, // a table or an index
	"42710":        errTaken, // a type, a policy or a constraint
	"42723":        errTaken, // a function
}

// untrusted says that the server's certificate is not one that the connection string accepts.
func untrusted(err error) bool {
	_, bad := errors.AsType[*tls.CertificateVerificationError](err)
	return bad
}

// noDatabase says which database does not exist.
func noDatabase(err error) string {
	if c, ok := errors.AsType[*pgconn.ConnectError](err); ok && c.Config != nil {
		return "there is no database " + c.Config.Database
	}
	return "there is no such database"
}

// repeatable says that the whole transaction can be repeated after the error (J4).
func repeatable(err error) bool {
	pg := serverError(err)
	return pg != nil && (pg.Code == "40001" || pg.Code == "40P01" || pg.Code == "55P03")
}

// serverError returns the server's own error, nil if the connection was lost.
func serverError(err error) *pgconn.PgError {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg
	}
	return nil
}

// forbidden says that the login lacks a right.
func forbidden(err error) bool {
	pg := serverError(err)
	return pg != nil && pg.Code == noRight
}

// undecided says that the error leaves the outcome of the commit open: the connection broke, or
// the server ended the session, perhaps after it had committed.
func undecided(err error) bool {
	for _, known := range []error{errNotSent, errRolledBack, errCorrupt} {
		if errors.Is(err, known) {
			return false
		}
	}
	pg := serverError(err)
	return pg == nil || pg.Severity == "FATAL" || pg.Severity == "PANIC" ||
		pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC"
}

// decisions are the errors of package store. An error that wraps one of them is already
// classified.
var decisions = []error{
	store.ErrLost, store.ErrBusy, store.ErrUnavailable, store.ErrUnknown, store.ErrRejected, store.ErrStale,
	store.ErrLeased,
	store.ErrJobClosed, store.ErrExhausted, store.ErrNotFound, store.ErrVersionTaken, store.ErrSchema,
	store.ErrPartition, store.ErrOwner,
}

// rejected makes an error about a caller's argument.
func rejected(op string, err error) error {
	return fmt.Errorf("postgres: %s: %w: %w", op, store.ErrRejected, err)
}

// settle classifies the error of a write that commits by itself, if it is not classified yet.
func settle(op string, err error) error {
	if err != nil && !classified(err) && undecided(err) {
		return fmt.Errorf("postgres: %s: %w: %w", op, store.ErrUnknown, err)
	}
	return settleRead(op, err)
}

// settleRead classifies the error of a read, which cannot have committed anything.
func settleRead(op string, err error) error {
	if other := elsewhere(op, err); other != nil || classified(err) {
		return cmp.Or(other, err)
	}
	return classify(op, err)
}

// classified reports whether the error wraps one of package store.
func classified(err error) bool {
	return slices.ContainsFunc(decisions, func(d error) bool { return errors.Is(err, d) })
}

// Retries of one call of the pool (J4).
const (
	maxAttempts  = 5
	firstDelay   = 10 * time.Millisecond
	longestDelay = time.Second
)

// retry repeats a call whose whole transaction can be repeated: after 40001, 40P01, 55P03 and
// lost connections, but not for a login that is refused. Writes are guarded, so a repetition finds
// its own work (C8).
func retry(ctx context.Context, call func() error) error { return new(doubt).retry(ctx, call) }

// doubt remembers whether an attempt of a call had an unknown outcome. If so, a later attempt
// that fails as unavailable does not prove that nothing was committed (J4).
type doubt struct{ cause error }

// combine turns the error of one attempt into that of all attempts so far.
func (d *doubt) combine(err error) error {
	if errors.Is(err, store.ErrUnknown) {
		d.cause = err
	} else if d.cause != nil && errors.Is(err, store.ErrUnavailable) {
		return fmt.Errorf("%w; tried again: %v", d.cause, err) //nolint:errorlint // it is not unavailable: something may have been committed
	}
	return err
}

func (d *doubt) retry(ctx context.Context, call func() error) error {
	for attempt := 1; ; attempt++ {
		err := d.combine(call())
		again := errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) ||
			errors.Is(err, store.ErrBusy)
		if !again || errors.Is(err, store.ErrAnotherDatabase) || errors.Is(err, store.ErrLogin) ||
			attempt == maxAttempts || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(backoff.Delay(attempt-1, firstDelay, longestDelay, rand.N[time.Duration]))
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}
