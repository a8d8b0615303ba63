package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// alive finds out within half a minute that a host has gone without a word, where nobody waits
// for an answer that would be missed.
var alive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// parse reads the connection string. Where it names several hosts and does not say which of them
// to take, only one that takes writes is used (S6). The error is a DSNError.
func (c Config) parse() (*pgxpool.Config, error) {
	p, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, &DSNError{Err: err}
	}
	p.MaxConns = int32(c.MaxConns)
	cc := p.ConnConfig
	cc.ConnectTimeout = c.ConnectTimeout
	cc.DialFunc = (&net.Dialer{KeepAliveConfig: alive}).DialContext
	said := strings.Contains(c.DSN, "target_session_attrs") || os.Getenv("PGTARGETSESSIONATTRS") != ""
	if several(cc) && cc.ValidateConnect == nil && !said {
		cc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return p, nil
}

// several says that a connection string names more than one host.
func several(c *pgx.ConnConfig) bool {
	return slices.ContainsFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != c.Host || f.Port != c.Port
	})
}

// hosts remembers which host of the connection string answered last. It is tried first, so that
// a host which is gone costs a timeout once, and not each connection one.
type hosts struct {
	mu    sync.Mutex
	names map[string]string // of the addresses that each name had last
	last  string            // address and port
}

// follow makes the connections of a configuration begin with the host that answered last.
func (h *hosts) follow(c *pgx.ConnConfig) {
	look := c.LookupFunc
	c.LookupFunc = func(ctx context.Context, name string) ([]string, error) {
		found, err := look(ctx, name)
		if err != nil {
			return nil, err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.names == nil {
			h.names = make(map[string]string)
		}
		maps.DeleteFunc(h.names, func(_, of string) bool { return of == name }) // those that it does not have any more
		for _, address := range found {
			h.names[address] = name
		}
		return found, nil
	}
	h.mu.Lock()
	address, port, err := net.SplitHostPort(h.last)
	name := h.names[address]
	h.mu.Unlock()
	if err != nil {
		return // no host has answered, or it is a socket of this machine
	}
	all := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	slices.SortStableFunc(all, func(a, b *pgconn.FallbackConfig) int {
		behind := func(f *pgconn.FallbackConfig) int {
			if f.Host == name && strconv.Itoa(int(f.Port)) == port {
				return 0
			}
			return 1
		}
		return behind(a) - behind(b)
	})
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
}

// answered notes the host of a connection.
func (h *hosts) answered(pg *pgconn.PgConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = pg.Conn().RemoteAddr().String()
}

// pidKey is where a connection keeps the number of its backend.
const pidKey = "quipu-pid"

// errPooled says that two statements of one connection met two backends.
var errPooled = errors.New("another backend of the server answers than before")

// arrive is what every connection does first: it makes the settings, learns the number of its
// backend, and finds out whether this is the space's database (S13). A pooler takes few settings
// at the start of a connection and gives a number of its own, so that neither can be left to the
// protocol.
func (s *Store) arrive(settings map[string]string) pgconn.AfterConnectFunc {
	names, values := make([]string, 0, len(settings)), make([]string, 0, len(settings))
	for name, value := range settings {
		names, values = append(names, name), append(values, value)
	}
	return func(ctx context.Context, pg *pgconn.PgConn) error {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.ConnectTimeout)
		defer cancel()
		first, err := greet(ctx, pg, "connection_settings", pTexts(names), pTexts(values))
		if err != nil {
			return err
		}
		pid := uint32(first.int(0))
		pg.CustomData()[pidKey] = pid
		s.hosts.answered(pg)
		if pid != pg.PID() {
			if again, err := backend(ctx, pg, "connection_backend"); err != nil || again != pid {
				return cmp.Or(err, errPooled)
			}
		}
		if _, err := s.settings.note(settingsOf(first), true); err != nil && ctx.Value(admitted{}) == nil {
			return err
		}
		return s.compare(ctx, pg)
	}
}

// backend runs a statement that returns a backend's number, or nothing, without preparing it.
func backend(ctx context.Context, pg *pgconn.PgConn, name string) (pid uint32, err error) {
	v, err := greet(ctx, pg, name)
	if err != nil || v == nil {
		return 0, err
	}
	return uint32(v.int(0)), nil
}

// greet runs a statement that returns at most one row, without preparing it.
func greet(ctx context.Context, pg *pgconn.PgConn, name string, params ...[]byte) (row, error) {
	r := pg.ExecParams(ctx, statements[name], params, nil, binary, binary).Read()
	switch {
	case r.Err != nil && strings.Contains(r.Err.Error(), "pooling mode"): // PgBouncer, which refuses a statement
		return nil, fmt.Errorf("%w: %w", errPooled, r.Err)
	case r.Err != nil:
		return nil, fmt.Errorf("%s: %w", name, r.Err)
	case len(r.Rows) == 0:
		return nil, nil
	}
	return row(r.Rows[0]), nil
}

// checkPooler refuses a pooler that gives each transaction another backend (S6). Two connections
// in use at the same time have two backends; one connection keeps its own.
func (s *Store) checkPooler(ctx context.Context) error {
	one, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer one.Release()
	c := wrap(one.Conn())
	if c.pid == c.pg.PID() {
		return nil // no pooler
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ConnectTimeout)
	defer cancel()
	other, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer other.leave()
	before, err := backend(ctx, c.pg, "connection_backend")
	if err != nil {
		return err
	}
	if _, err := backend(ctx, other.pg, "begin"); err != nil {
		return err
	}
	held, err := backend(ctx, other.pg, "connection_backend")
	switch {
	case err != nil:
		return err
	case held == before: // while the other transaction has it
		return errPooled
	}
	if after, err := backend(ctx, c.pg, "connection_backend"); err != nil || after != before {
		return errors.Join(err, errPooled)
	}
	return nil
}

// dial opens a connection outside the pool, under a name of its own (J4).
func (s *Store) dial(ctx context.Context) (*conn, error) {
	cfg := s.pool.Config().ConnConfig
	term := s.where.term.Load()
	if err := s.before(ctx, cfg); err != nil {
		return nil, err
	}
	raw, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	c := wrap(raw)
	c.raw, c.term = raw, term
	return c, nil
}

// line is a connection outside the pool that is opened on demand.
type line struct {
	s    *Store
	conn *conn // nil until it connects
}

// connect opens it if there is no connection that may be used: one of this term, to the space's
// database.
func (l *line) connect(ctx context.Context) error {
	if err := l.s.where.refused(); err != nil {
		l.drop()
		return err
	}
	if l.conn != nil && !l.conn.pg.IsClosed() && l.conn.term == l.s.where.term.Load() {
		return nil
	}
	l.drop()
	var err error
	l.conn, err = l.s.dial(ctx)
	return err
}

func (l *line) drop() {
	if l.conn != nil {
		l.conn.leave()
	}
	l.conn = nil
}

// call runs one statement. After an error it closes the connection; the next call opens another.
func (l *line) call(ctx context.Context, op, name string, visit func(row) error, params ...[]byte) error {
	err := l.connect(ctx)
	if err == nil {
		err = l.conn.query(ctx, name, visit, params...)
	}
	if err == nil {
		return nil
	}
	l.s.moved(err)
	if undecided(err) || errors.Is(err, errNotSent) {
		l.drop()
	}
	return classify(op, err)
}

// leave closes a connection without waiting long for the server, so that its owner makes another.
func (c *conn) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.pg.Close(ctx) // its transaction is rolled back by the server
}

// isBroken says that no statement of a connection will succeed: its server takes no writes any
// more, or its prepared statements are not its own.
func isBroken(err error) bool {
	pg := serverError(err)
	return pg != nil &&
		(pg.Code == readOnly || pg.Code == recovering || pg.Code == noStatement || pg.Code == statementTwice)
}

// moved gives all pooled connections up when one of them met a server that takes no writes: the
// others go to the same server, and would read there what is not true any more.
func (s *Store) moved(err error) {
	if pg := serverError(err); pg == nil || pg.Code != readOnly && pg.Code != recovering {
		return
	}
	s.log.Warn("the server takes no writes: connections are made anew", "error", err)
	s.pool.Reset()
	if s.users != nil { // not yet while it opens
		s.users.Reset()
	}
}
