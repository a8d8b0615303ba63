package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
		if spoiled(err) {
			c.leave()
		}
		return fmt.Errorf("%w: prepare %w", errNotSent, err)
	}
	return nil
}

// batch is a series of statements that are sent together (J6).
type batch struct {
	conn  *conn
	raw   pgconn.Batch
	names []string
}

var binary = []int16{1}

func (c *conn) batch() *batch { return &batch{conn: c} }

// queue adds a statement that require has prepared.
func (b *batch) queue(name string, params ...[]byte) {
	b.names = append(b.names, name)
	if b.conn.known == nil {
		b.raw.ExecParams(statements[name], params, nil, binary, binary)
		return
	}
	sd := b.conn.known[name]
	if sd == nil {
		panic("postgres: statement " + name + " was not required")
	}
	b.raw.ExecStatement(sd, params, binary, binary)
}

// results reads the answers of a batch, in the order of its statements.
type results struct {
	conn  *conn
	mrr   *pgconn.MultiResultReader
	names []string
	next  int
	err   error
}

// send sends the batch: one round trip.
func (b *batch) send(ctx context.Context) *results {
	if err := ctx.Err(); err != nil {
		return &results{names: b.names, err: fmt.Errorf("%w: %w", errNotSent, err)}
	}
	if b.conn.pg.IsClosed() {
		return &results{names: b.names, err: fmt.Errorf("%w: the connection was lost before", errNotSent)}
	}
	return &results{conn: b.conn, mrr: b.conn.pg.ExecBatch(ctx, &b.raw), names: b.names}
}

// each reads the rows of the next statement. The values are valid only within the call. A COMMIT
// of a transaction that has failed is errRolledBack.
func (r *results) each(visit func(row) error) {
	if r.err != nil {
		return
	}
	name := r.names[r.next]
	r.next++
	if !r.mrr.NextResult() {
		if r.err = r.mrr.Close(); r.err == nil {
			r.err = fmt.Errorf("no result")
		}
		r.err = fmt.Errorf("%s: %w", name, r.err)
		return
	}
	rr := r.mrr.ResultReader()
	for rr.NextRow() {
		if visit == nil || r.err != nil {
			continue
		}
		if err := visit(rr.Values()); err != nil {
			r.err = fmt.Errorf("%s: %w", name, err)
		}
	}
	tag, err := rr.Close()
	switch {
	case r.err != nil:
	case err != nil:
		r.err = fmt.Errorf("%s: %w", name, err)
	case name == "commit" && tag.String() != "COMMIT":
		r.err = fmt.Errorf("%w: COMMIT was answered %s", errRolledBack, tag)
	}
}

// close reads the remaining answers and returns the first error.
func (r *results) close() error {
	for r.err == nil && r.next < len(r.names) {
		r.each(nil)
	}
	if r.mrr == nil {
		return r.err
	}
	if err := r.mrr.Close(); err != nil && r.err == nil {
		r.err = err
	}
	if r.conn.known != nil && spoiled(r.err) {
		r.conn.leave()
	}
	return r.err
}

// query runs one statement.
func (c *conn) query(ctx context.Context, name string, visit func(row) error, params ...[]byte) error {
	return c.run(ctx, step{name, params, visit})
}

// did runs one statement, and says whether it returned a row.
func (c *conn) did(ctx context.Context, name string, params ...[]byte) (did bool, err error) {
	err = c.query(ctx, name, func(row) error { did = true; return nil }, params...)
	return did, err
}

// step is one statement of a series that is sent as a whole.
type step struct {
	name   string
	params [][]byte
	visit  func(row) error
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
	b := c.batch()
	for _, s := range steps {
		b.queue(s.name, s.params...)
	}
	r := b.send(ctx)
	for _, s := range steps {
		r.each(s.visit)
	}
	return r.close()
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
