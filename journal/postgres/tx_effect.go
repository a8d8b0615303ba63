package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// userIdle bounds the time between two statements of a Tx effect: a process that
// stands still must not hold the user's rows for ever (F2).
const userIdle = "60s"

// userPool is the pool of Tx effects: connections as the connection string and
// the database have them, none of them opened before it is needed. Our own
// statements are prepared on each, in the sight of our tables.
func (s *Store) userPool(ctx context.Context) (*pgxpool.Pool, error) {
	p, err := pgxpool.ParseConfig(s.cfg.DSN)
	if err != nil {
		return nil, fmt.Errorf("postgres: Config.DSN: %w", err)
	}
	p.MaxConns, p.MinConns, p.MinIdleConns = int32(s.cfg.MaxConns), 0, 0
	p.ConnConfig.ConnectTimeout = s.cfg.ConnectTimeout
	if params := p.ConnConfig.RuntimeParams; params["idle_in_transaction_session_timeout"] == "" {
		params["idle_in_transaction_session_timeout"] = userIdle
	}
	if p.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		p.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	p.BeforeConnect = christen
	p.AfterConnect = func(ctx context.Context, raw *pgx.Conn) error {
		c := wrap(raw)
		if err := c.require(ctx, userStatements...); err != nil {
			return err
		}
		b := c.batch()
		b.queue("txe_home_session", pText(s.home()))
		if err := b.send(ctx).close(); err != nil {
			return err
		}
		if err := c.require(ctx, chainStatements...); err != nil {
			return err
		}
		b = c.batch()
		b.queue("txe_reset")
		return b.send(ctx).close()
	}
	pool, err := pgxpool.NewWithConfig(ctx, p)
	if err != nil {
		return nil, classify("open", err)
	}
	return pool, nil
}

// userStatements see no table of the space.
var userStatements = []string{
	"begin", "commit", "rollback", "txe_home", "txe_home_session", "txe_save", "txe_undo", "txe_check", "txe_keep",
	"txe_cursors", "txe_unlock", "txe_temp", "txe_reset", "txe_user", "txe_role",
}

// txRun is one run of the body of a Tx effect, on a connection of its own.
type txRun struct {
	s      *Store
	raw    *pgx.Conn
	c      *conn
	lease  store.Lease
	effect journal.Effect
	handle *handle
	own    error // of the body: rolled back
	busy   error // of the body, which met a deadlock or a lock that it did not wait for
}

// TxEffect runs an effect of class tx: what its body writes commits together with
// the effect and its entry, or not at all (E3).
func (s *Store) TxEffect(ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall) (store.EffectRow, error) {
	if e.Class != store.ClassTx {
		return store.EffectRow{}, fmt.Errorf("postgres: tx effect: %w: %q is of class %s", store.ErrRejected, e.Name, e.Class)
	}
	var out store.EffectRow
	var x *txRun
	err := retry(ctx, func() (err error) {
		x = &txRun{s: s, lease: l, effect: e}
		out, err = x.attempt(ctx, call)
		return settle("tx effect", err)
	})
	switch {
	case errors.Is(err, store.ErrUnavailable) && ctx.Err() != nil: // nothing was committed
		return store.EffectRow{}, &store.TxError{Err: context.Cause(ctx)}
	case errors.Is(err, store.ErrUnavailable) && x.busy != nil: // five times: no trouble of ours
		return store.EffectRow{}, &store.TxError{Err: x.busy}
	case err != nil:
		return store.EffectRow{}, err
	case x.own != nil:
		return store.EffectRow{}, &store.TxError{Err: x.own}
	}
	return out, nil
}

// attempt runs the body once. Without an error, own may be that of the body.
func (x *txRun) attempt(ctx context.Context, call store.TxCall) (out store.EffectRow, err error) {
	pooled, err := x.s.users.Acquire(ctx)
	if err != nil {
		return out, fmt.Errorf("%w: %w", errNotSent, err)
	}
	defer pooled.Release() // closes what is still in a transaction
	x.raw, x.c = pooled.Conn(), wrap(pooled.Conn())
	stood, err := x.open(ctx)
	if err != nil {
		return out, err
	}
	if stood != nil {
		x.leave(ctx)
		return *stood, nil
	}
	end, err := x.call(ctx, call)
	if err == nil && x.own == nil {
		out, err = x.conclude(ctx, end)
	}
	if err != nil || x.own != nil {
		x.leave(ctx)
	}
	return out, err
}

// open begins the transaction, and looks whether the effect has an outcome.
func (x *txRun) open(ctx context.Context) (stood *store.EffectRow, err error) {
	err = x.c.run(
		ctx,
		step{"begin", nil, nil},
		step{"txe_save", nil, nil},
		step{"txe_home", [][]byte{pText(x.s.home())}, nil},
		step{"effects_read", effectKey(x.lease.Job, x.effect.Key), func(v row) error {
			f, err := readEffect(v)
			if err == nil && f.State != store.EffectStarted {
				stood = f
			}
			return err
		}},
		step{"txe_undo", nil, nil}, // with the search path
	)
	if err != nil {
		x.leave(ctx)
		return nil, classify("tx effect", err) // nothing is committed here
	}
	return stood, nil
}

// call runs the body. Its error is that of the database, after which the whole
// is run again (J4).
func (x *txRun) call(ctx context.Context, call store.TxCall) (end store.TxEnd, err error) {
	h := &handle{conn: x.raw}
	x.handle = h
	// A body that goes on when its context has ended loses the connection: its
	// locks must not outlive the run.
	link := x.c.pg.Conn()
	alive := context.AfterFunc(ctx, func() { _ = link.Close() })
	returned := false
	defer func() {
		if !returned { // it panicked, or ended its goroutine
			alive()
			_ = h.end()
			x.leave(ctx)
		}
	}()
	end, x.own = call(ctx, h)
	returned = true
	fault := h.end()
	switch {
	case !alive():
		x.own = cmp.Or(x.own, context.Cause(ctx))
	case fault != nil:
		x.own = errors.Join(fault, x.own)
	case x.own != nil && h.again != nil:
		err = fmt.Errorf("postgres: tx effect: %w: %w: %w", store.ErrUnavailable, h.again, x.own)
		if !x.raw.IsClosed() {
			x.busy = x.own
		}
		x.own = nil
	}
	return end, err
}

// tidy takes back what the body may have left on the connection, settings and
// all, before our own statements.
var tidy = []string{"txe_cursors", "txe_unlock", "txe_temp", "txe_reset", "txe_user", "txe_role"}

// conclude ends the body, locks the row and commits (J8).
func (x *txRun) conclude(ctx context.Context, end store.TxEnd) (out store.EffectRow, err error) {
	ctx = context.WithoutCancel(ctx)
	e := x.effect
	e.Result, e.Error = end.Result, end.Error
	w := &effectCall{op: "tx effect", lease: x.lease, effect: e}
	h, err := x.lock(ctx, w, end.Error == nil && !end.NotDone)
	if err != nil || x.own != nil {
		return out, err
	}
	if h == nil {
		return out, x.s.refuse(w.op, store.ErrStale, x.lease.Request)
	}
	if _, ok := h.fence(&x.lease); !ok {
		return out, x.s.refuse(w.op, store.ErrStale, x.lease.Request)
	}
	if err := fits(&e); err != nil {
		return out, err
	}
	out = h.finish(x.lease, e, end.NotDone) // or that of an attempt whose answer was lost
	return out, h.x.commit(ctx)
}

// lock keeps or undoes what the body did, and then locks the chain: one trip. An
// error of keeping is the body's own. There is no chain where the row has gone.
func (x *txRun) lock(ctx context.Context, w *effectCall, keep bool) (*chain, error) {
	ctx, cancel := context.WithTimeout(ctx, x.s.cfg.CommitTimeout)
	defer cancel()
	open := &chains{s: x.s, c: x.c, of: make(map[rowKey]*chain, 1)}
	b := x.c.batch()
	before := []string{"txe_undo"}
	if keep {
		before = []string{"txe_check", "txe_keep"}
	}
	for _, name := range before {
		b.queue(name)
	}
	for _, name := range tidy {
		b.queue(name)
	}
	b.queue("txe_home", pText(x.s.home()))
	writes := []*effectCall{w}
	open.ask(b, "chains_lock", writes)
	r := b.send(ctx)
	for range before {
		r.each(nil)
	}
	if r.err != nil && !x.again(r.err) && !undecided(r.err) {
		x.own = fmt.Errorf("what effect %q wrote cannot be kept: %w", x.effect.Name, errors.Join(r.err, x.handle.failed))
	}
	for range len(tidy) + 1 {
		r.each(nil)
	}
	open.read(r, writes)
	err := r.close()
	switch {
	case x.own != nil:
		return nil, nil
	case err != nil:
		return nil, classify("tx effect", err) // nothing is committed here
	}
	return open.of[w.row()], nil
}

// again reports that keeping failed for a reason after which the whole is run
// again (J4): its own, or one that the body met and did not tell.
func (x *txRun) again(err error) bool {
	pg := serverError(err)
	return repeatable(err) || pg != nil && pg.Code == "25P02" && x.handle.again != nil
}

// leave rolls back. What a ROLLBACK does not undo is the session's advisory
// locks.
func (x *txRun) leave(ctx context.Context) {
	if x.raw.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	b := x.c.batch()
	b.queue("rollback")
	b.queue("txe_unlock")
	if err := b.send(ctx).close(); err != nil {
		hangUp(x.raw)
	}
}
