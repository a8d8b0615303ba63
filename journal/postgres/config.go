package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Config says where the space is stored. The zero value of a field means its default.
type Config struct {
	// DSN is the connection string or URL of the database. Required. Anything it leaves out has
	// libpq's defaults. Give host, port, user and database, so that no PG… environment variable
	// fills them in. It may name several hosts; then only one that takes writes is used, unless it
	// has target_session_attrs (S6).
	DSN string
	// Space names the space: [a-z][a-z0-9-]{0,31}. Required. Its schema is
	// quipu_<space>, with - as _.
	Space string
	// MaxConns bounds the pool that clients, workers and sweepers share. Committers have their
	// own connections; Tx effects have another pool of that size, opened on demand. Default 8.
	MaxConns int
	// ConnectTimeout bounds one attempt to connect. Default 5 s.
	ConnectTimeout time.Duration
	// CommitTimeout bounds a running COMMIT, which no context cancels (J4). After it the outcome
	// is found out by the marker. Default 30 s.
	CommitTimeout time.Duration
	// ResolveTimeout bounds finding out the outcome of a commit. After it the error is
	// store.ErrUnknown. Default 30 s.
	ResolveTimeout time.Duration
	// Migrating lets Open accept a missing or older schema, for Migrate.
	Migrating bool
	// AnyDatabase lets the store work in a database that is another one than the space's (S13):
	// for commands that only look, and for Recover.
	AnyDatabase bool
	// Accepted, if set, is called when the space goes on in a database that was accepted, before
	// anything is read there (S13).
	Accepted func(epoch int64)
	// Writer and Build are recorded in the entries that the store writes itself, for audits.
	Writer, Build string
	// Logger logs reconnections and resolved commits. Default: discards.
	Logger *slog.Logger
}

const (
	defaultMaxConns = 8
	defaultConnect  = 5 * time.Second
	defaultCommit   = 30 * time.Second
	defaultResolve  = 30 * time.Second
)

var spaceName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

func (c Config) withDefaults() (Config, error) {
	if c.DSN == "" {
		return c, errors.New("postgres: Config.DSN is empty: give the database's connection string")
	}
	if !spaceName.MatchString(c.Space) {
		return c, fmt.Errorf("postgres: space %.50q is not of the form [a-z][a-z0-9-]{0,31}", c.Space)
	}
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, defaultConnect)
	c.CommitTimeout = cmp.Or(c.CommitTimeout, defaultCommit)
	c.ResolveTimeout = cmp.Or(c.ResolveTimeout, defaultResolve)
	c.MaxConns = cmp.Or(c.MaxConns, defaultMaxConns)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// schemaOf names the schema of a space; the name needs no escaping beyond
// quotes.
func schemaOf(space string) string { return "quipu_" + strings.ReplaceAll(space, "-", "_") }

// spaceOf is the space of a schema: the name of a space has no _.
func spaceOf(schema string) string {
	return strings.ReplaceAll(strings.TrimPrefix(schema, "quipu_"), "_", "-")
}

// parameters are set on every connection of ours. Every statement finds its rows by primary key from
// arrays, so a plan is made once, always with index look-ups, whatever the table statistics say.
// Without enable_material off, a plan would read a span of numbers once and compare its keys.
func parameters(schema string) map[string]string {
	return map[string]string{
		"search_path":                         pgx.Identifier{schema}.Sanitize(),
		"enable_material":                     "off",
		"plan_cache_mode":                     "force_generic_plan",
		"enable_seqscan":                      "off",
		"enable_hashjoin":                     "off",
		"enable_mergejoin":                    "off",
		"enable_bitmapscan":                   "off",
		"jit":                                 "off",
		"idle_in_transaction_session_timeout": "60s",
		"default_transaction_isolation":       "read committed",
		// An operator may set these for a database or a login, and would turn trouble into answers.
		"standard_conforming_strings": "on",
		"statement_timeout":           "0",
		"lock_timeout":                "0",
	}
}

// DSNError says that Config.DSN cannot be read as a connection string. The caller names the
// place that it came from.
type DSNError struct {
	Err error // what is wrong with it, without a password
}

// Error says what a connection string looks like, and what is wrong with this one.
func (e *DSNError) Error() string {
	return fmt.Sprintf("not a connection string such as postgres://user@host:5432/db: %v", e.Err)
}

// Unwrap returns what is wrong with it.
func (e *DSNError) Unwrap() error { return e.Err }

// CheckDSN reads a connection string without connecting. The error is a DSNError.
func CheckDSN(dsn string) error {
	_, err := Config{DSN: dsn}.parse()
	return err
}
