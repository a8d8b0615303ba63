package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// conn is one connection with its prepared statements. It speaks the binary protocol itself:
// parameters are arrays that are built once, and rows are read in place.
type conn struct {
	pg *pgconn.PgConn
	// known are its prepared statements. It is nil on a connection that is not ours, where
	// nothing may stay prepared.
	known map[string]*pgconn.StatementDescription
	// name is the application name, unique to the connection. Another connection ends this one's
	// backend by it (J4).
	name string
	pid  uint32 // the number of its backend; 0 on a connection that is not ours
	// Of a connection outside the pool: its pgx.Conn, and the term of the store when it was made
	// (S13).
	raw  *pgx.Conn
	term int64
}

// customKey is where a pooled connection keeps its conn.
const customKey = "quipu"

// newSession draws a new session number (L1).
func newSession() journal.GUID { return journal.GUID(uuid.New()) }

// wrap returns the conn of a pooled connection.
func wrap(c *pgx.Conn) *conn {
	pg := c.PgConn()
	if known, ok := pg.CustomData()[customKey].(*conn); ok {
		return known
	}
	w := &conn{pg: pg, known: make(map[string]*pgconn.StatementDescription), name: c.Config().RuntimeParams["application_name"]}
	w.pid, _ = pg.CustomData()[pidKey].(uint32)
	pg.CustomData()[customKey] = w
	return w
}

// idle reports whether no transaction is open.
func (c *conn) idle() bool { return c.pg.TxStatus() == 'I' }

// require prepares the statements that this connection has not prepared yet, in one round trip; and
// with the first ones rollback, since nothing can be prepared in a transaction that has failed.
func (c *conn) require(ctx context.Context, wanted ...string) error {
	if c.known == nil {
		return nil
	}
	var names []string
	for _, name := range wanted {
		if c.known[name] == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if c.known["rollback"] == nil && !slices.Contains(names, "rollback") {
		names = append(names, "rollback")
	}
	p := c.pg.StartPipeline(ctx)
	for _, name := range names {
		text, ok := statements[name]
		if !ok {
			panic("postgres: no statement " + name)
		}
		p.SendPrepare(name, text, nil)
	}
	err := p.Sync()
	for i := 0; i < len(names) && err == nil; i++ {
		var got any
		if got, err = p.GetResults(); err != nil {
			err = fmt.Errorf("%s: %w", names[i], err)
		} else if sd, ok := got.(*pgconn.StatementDescription); ok {
			sd.Name = names[i] // the answer does not name it
			c.known[names[i]] = sd
		}
	}
	if closed := p.Close(); err == nil {
		err = closed
	}
	if err != nil {
		if isBroken(err) {
			c.leave()
		}
		return fmt.Errorf("%w: prepare %w", errNotSent, err)
	}
	return nil
}

// step is one statement of a series that is sent as a whole (J6).
type step struct {
	name   string
	params [][]byte
	visit  func(row) error // its values are valid only within the call
}

// batch is such a series.
type batch []step

func (b *batch) queue(name string, params ...[]byte) {
	*b = append(*b, step{name: name, params: params})
}

// stepError is the error of a statement of a batch; step counts from 0.
type stepError struct {
	step int
	name string
	err  error
}

// Error names the statement.
func (e *stepError) Error() string { return e.name + ": " + e.err.Error() }

// Unwrap returns the cause.
func (e *stepError) Unwrap() error { return e.err }

var binary = []int16{1}

// query runs one statement.
func (c *conn) query(ctx context.Context, name string, visit func(row) error, params ...[]byte) error {
	return c.run(ctx, step{name, params, visit})
}

// did runs one statement, and says whether it returned a row.
func (c *conn) did(ctx context.Context, name string, params ...[]byte) (did bool, err error) {
	err = c.query(ctx, name, func(row) error { did = true; return nil }, params...)
	return did, err
}

// clock is the step that reads the time.
func clock(now *collation.Micros) step {
	return step{"clock", nil, func(v row) error { *now = collation.Micros(v.int(0)); return nil }}
}

// setting is the step that sets a setting, until the transaction ends or for the connection.
func setting(name, value string, local bool) step {
	return step{"setting", [][]byte{pText(name), pText(value), pBool(local)}, nil}
}

// run sends statements as one batch and visits their rows. Those that are not prepared yet are
// prepared before, all of them, so that a transaction is begun only when it can be ended.
func (c *conn) run(ctx context.Context, steps ...step) error {
	names := make([]string, len(steps))
	for i := range steps {
		names[i] = steps[i].name
	}
	if err := c.require(ctx, names...); err != nil {
		return err
	}
	switch err := ctx.Err(); {
	case len(steps) == 0:
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", errNotSent, err)
	case c.pg.IsClosed():
		return fmt.Errorf("%w: the connection was lost before", errNotSent)
	}
	var raw pgconn.Batch
	for _, s := range steps {
		if sd := c.known[s.name]; sd != nil {
			raw.ExecStatement(sd, s.params, binary, binary)
		} else { // the connection is not ours
			raw.ExecParams(statements[s.name], s.params, nil, binary, binary)
		}
	}
	results := c.pg.ExecBatch(ctx, &raw)
	var err error
	for i := 0; i < len(steps) && err == nil; i++ {
		if failed := steps[i].read(results); failed != nil {
			err = &stepError{i, steps[i].name, failed}
		}
	}
	if closed := results.Close(); err == nil {
		err = closed
	}
	if c.known != nil && isBroken(err) {
		c.leave()
	}
	return err
}

// read reads the answer. A COMMIT of a transaction that has failed is errRolledBack.
func (s *step) read(results *pgconn.MultiResultReader) error {
	if !results.NextResult() {
		return cmp.Or(results.Close(), errors.New("no result"))
	}
	r := results.ResultReader()
	var failed error
	for r.NextRow() {
		if s.visit != nil && failed == nil {
			failed = s.visit(r.Values())
		}
	}
	tag, err := r.Close()
	if err == nil && s.name == "commit" && tag.String() != "COMMIT" {
		err = fmt.Errorf("%w: COMMIT was answered %s", errRolledBack, tag)
	}
	return cmp.Or(failed, err)
}

// transact runs the steps as one transaction in one round trip.
func (c *conn) transact(ctx context.Context, steps ...step) error {
	return c.series(ctx, "begin", steps)
}

// snapshot runs the steps on one snapshot, in one round trip.
func (c *conn) snapshot(ctx context.Context, steps ...step) error {
	return c.series(ctx, "begin_snapshot", steps)
}

func (c *conn) series(ctx context.Context, begin string, steps []step) error {
	err := c.run(ctx, slices.Concat([]step{{name: begin}}, steps, []step{{name: "commit"}})...)
	if err != nil && !c.idle() {
		abandon(ctx, c)
	}
	return err
}
