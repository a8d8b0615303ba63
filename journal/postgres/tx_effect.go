package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// userIdle bounds the time between two statements of a Tx effect, so that a process that hangs
// does not lock the user's rows for ever (F2); no setting of the connection can leave it out.
const (
	userIdle    = "60s"
	idleSetting = "idle_in_transaction_session_timeout"
)

// userPool makes the pool of Tx effects. Its connections have the settings of the connection
// string and the database, and are opened on demand. Our own statements are prepared on each,
// with our tables on the search path.
func (s *Store) userPool(ctx context.Context) (*pgxpool.Pool, error) {
	p, err := s.cfg.parse()
	if err != nil {
		return nil, err
	}
	p.MinConns, p.MinIdleConns = 0, 0
	if p.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		p.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	p.BeforeConnect, p.ConnConfig.AfterConnect = s.before, s.arrive(nil)
	p.AfterConnect = func(ctx context.Context, raw *pgx.Conn) error {
		c := wrap(raw)
		err := c.require(ctx, userStatements...)
		if err == nil {
			err = c.run(ctx, setting("search_path", s.home(), false))
		}
		if err == nil {
			err = c.require(ctx, chainStatements...)
		}
		if err == nil {
			err = c.query(ctx, "txe_reset", nil)
		}
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, p)
	if err != nil {
		return nil, classify("open", err)
	}
	return pool, nil
}

// userStatements use no table of the space.
var userStatements = []string{
	"begin", "commit", "rollback", "setting", "txe_home", "txe_save", "txe_undo", "txe_check", "txe_keep",
	"txe_cursors", "txe_unlock", "txe_temp", "txe_reset", "txe_user", "txe_role",
}

// txRun is one run of the body of a Tx effect, on its own connection.
type txRun struct {
	s      *Store
	raw    *pgx.Conn
	c      *conn
	of     collation.RowKey
	key    journal.Digest
	handle *handle
	own    error // an error of the body, which rolls it back
	busy   error // a deadlock, or a lock that the body did not wait for
}

// Body implements store.Bodies: the handle is an EffectTx.
func (s *Store) Body(
	ctx context.Context, of collation.RowKey, key journal.Digest, call store.TxCall,
	end func(context.Context, store.Tx, store.TxEnd) error,
) (stood *store.EffectRow, err error) {
	var x *txRun
	err = retry(ctx, func() (err error) {
		x = &txRun{s: s, of: of, key: key}
		stood, err = x.attempt(ctx, call, end)
		return settle("tx effect", err)
	})
	switch {
	case x.own != nil:
		return nil, &store.TxError{Err: x.own}
	case errors.Is(err, store.ErrUnavailable) && ctx.Err() != nil: // nothing was committed
		return nil, &store.TxError{Err: context.Cause(ctx)}
	case errors.Is(err, store.ErrUnavailable) && x.busy != nil: // after five attempts it is not trouble of ours
		return nil, &store.TxError{Err: x.busy}
	}
	return stood, err
}

// attempt runs the body once. The body's own error goes to own instead of err.
func (x *txRun) attempt(
	ctx context.Context, call store.TxCall, end func(context.Context, store.Tx, store.TxEnd) error,
) (stood *store.EffectRow, err error) {
	if err := x.s.refused(); err != nil {
		return nil, err
	}
	pooled, err := x.s.users.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	defer pooled.Release() // closes a connection that is still in a transaction
	x.raw, x.c = pooled.Conn(), wrap(pooled.Conn())
	if stood, err = x.open(ctx); err != nil {
		return nil, err
	}
	if stood == nil {
		var with store.TxEnd
		if with, err = x.call(ctx, call); err == nil && x.own == nil {
			err = end(context.WithoutCancel(ctx), ending{x, with.Error == nil && !with.NotDone}, with)
		}
	}
	if !x.c.idle() {
		x.leave(ctx)
	}
	if x.own != nil {
		return nil, nil
	}
	return stood, err
}

// open begins the transaction and reads whether the effect has an outcome.
func (x *txRun) open(ctx context.Context) (stood *store.EffectRow, err error) {
	err = x.c.run(
		ctx,
		step{"begin", nil, nil},
		setting(idleSetting, cmp.Or(x.raw.Config().RuntimeParams[idleSetting], userIdle), true),
		step{"txe_save", nil, nil},
		step{"txe_home", [][]byte{pText(x.s.home())}, nil},
		step{
			"effects_read", append(arrays([]effectKey{{rowKey{x.of.Job, x.of.GUID}, x.key}}, putEffectKey), allJobs.ends()...),
			func(v row) error {
				if v.null(1) {
					return nil
				}
				f, err := readEffect(v[1:])
				if err == nil && f.State != store.EffectStarted {
					stood = &f
				}
				return err
			},
		},
		step{"txe_undo", nil, nil}, // also resets the search path
	)
	if err != nil {
		x.leave(ctx)
		return nil, classify("tx effect", err) // open does not commit
	}
	return stood, nil
}

// call runs the body. Its error is trouble with the database, after which everything runs again
// (J4).
func (x *txRun) call(ctx context.Context, call store.TxCall) (end store.TxEnd, err error) {
	h := &handle{conn: x.raw}
	x.handle = h
	// If a body goes on after its context has ended, its connection is closed: its locks must not
	// outlive the run.
	link := x.c.pg.Conn()
	alive := context.AfterFunc(ctx, func() { _ = link.Close() })
	returned := false
	defer func() {
		if !returned { // it panicked, or called Goexit
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

// tidy resets what the body may have left on the connection, including settings, before our own
// statements run.
var tidy = []string{"txe_cursors", "txe_unlock", "txe_temp", "txe_reset", "txe_user", "txe_role"}

// ending is the transaction of a body that has ended. In one trip it keeps or undoes what the
// body did, and then locks the chain (J8).
type ending struct {
	*txRun
	keep bool
}

// errKept marks an error of keeping what the body wrote.
var errKept = errors.New("what the body wrote cannot be kept")

// Load implements store.Tx for one chain. The chain is absent if its row has gone.
func (x ending) Load(ctx context.Context, wants []store.Want, _ bool) (*store.Loaded, error) {
	ctx, cancel := context.WithTimeout(ctx, x.s.cfg.CommitTimeout)
	defer cancel()
	before := []string{"txe_undo"}
	if x.keep {
		before = []string{"txe_check", "txe_keep"}
	}
	var b batch
	for _, name := range append(before, tidy...) {
		b.queue(name)
	}
	b.queue("txe_home", pText(x.s.home()))
	w, _ := gather(wants)
	l := &store.Loaded{Chains: make(map[collation.RowKey]*collation.Chain, 1)}
	b = append(append(b, x.s.readChains(w, l, allJobs, true)...), clock(&l.Now))
	if err := x.c.run(ctx, b...); err != nil {
		if at, of := errors.AsType[*stepError](err); of && at.step < len(before) && !x.again(err) && !undecided(err) {
			x.own = fmt.Errorf("%w: %w", errKept, errors.Join(err, x.handle.failed))
		}
		return nil, classify("tx effect", err) // Load does not commit
	}
	for i := range wants {
		h := l.Chains[wants[i].Chain]
		if h == nil {
			h = &collation.Chain{Request: wants[i].Chain.GUID}
			l.Chains[wants[i].Chain] = h
		}
		h.Now = l.Now
	}
	return l, nil
}

// Commit implements store.Tx.
func (x ending) Commit(ctx context.Context, plans []store.Chained) error {
	w, err := x.s.merge(plans)
	if err != nil {
		return rejected("tx effect", err)
	}
	return w.lost(x.s.conclude(ctx, x.c, w))
}

// again says that keeping failed for a reason after which everything runs again (J4): either that
// failure, or one that the body met and hid.
func (x *txRun) again(err error) bool {
	pg := serverError(err)
	return repeatable(err) || pg != nil && pg.Code == "25P02" && x.handle.again != nil
}

// leave rolls back, and releases the session's advisory locks, which a ROLLBACK keeps.
func (x *txRun) leave(ctx context.Context) {
	if x.raw.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if err := x.c.run(ctx, step{name: "rollback"}, step{name: "txe_unlock"}); err != nil {
		x.c.leave()
	}
}
