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
	term int64  // when it was made outside the pool: the term of the store then (S13)
}

// customKey is where a pooled connection keeps its conn.
const customKey = "quipu"

// applicationName names a connection after its session.
func applicationName(session journal.GUID) string { return "quipu-" + session.String() }

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

// require prepares the statements that this connection has not prepared yet, in one round trip.
func (c *conn) require(ctx context.Context, names ...string) error {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return c.known[name] != nil })
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	names = slices.Compact(names)
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

// each reads the rows of the next statement. The values are valid only within the call.
func (r *results) each(visit func(row) error) string {
	if r.err != nil {
		return ""
	}
	name := r.names[r.next]
	r.next++
	if !r.mrr.NextResult() {
		if r.err = r.mrr.Close(); r.err == nil {
			r.err = fmt.Errorf("no result")
		}
		r.err = fmt.Errorf("%s: %w", name, r.err)
		return ""
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
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s: %w", name, err)
	}
	return tag.String()
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
	if err := c.require(ctx, name); err != nil {
		return err
	}
	b := c.batch()
	b.queue(name, params...)
	r := b.send(ctx)
	r.each(visit)
	return r.close()
}

// step is one statement of a series that is sent as a whole.
type step struct {
	name   string
	params [][]byte
	visit  func(row) error
}

// run sends prepared statements as one batch and visits their rows.
func (c *conn) run(ctx context.Context, steps ...step) error {
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
	all := make([]step, 0, len(steps)+2)
	all = append(append(append(all, step{name: begin}), steps...), step{name: "commit"})
	for _, s := range all {
		if err := c.require(ctx, s.name); err != nil {
			return err
		}
	}
	if err := c.require(ctx, "rollback"); err != nil {
		return err
	}
	err := c.run(ctx, all...)
	if err != nil && !c.idle() {
		abandon(ctx, c)
	}
	return err
}
