package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quipu-journal/quipu/internal/store"
)

// Store is one space in one database. It is safe for concurrent use; its committers are not.
type Store struct {
	cfg    Config
	schema string
	pool   *pgxpool.Pool
	users  *pgxpool.Pool // for Tx effects, with the database's own settings
	hosts  hosts
	log    *slog.Logger

	where     whereabouts                  // which database this is (S13)
	settings  promised                     // whether what the promise rests on holds (S7)
	numbers   numbers                      // of jobs, as far as they are known
	announced atomic.Int64                 // the last announcement, in Unix nanoseconds
	seal      atomic.Pointer[store.Sealer] // see Seal
}

var _ store.Store = (*Store)(nil)

// Open connects to the space and checks its schema: store.ErrSchema if it is not this build's, or
// missing (*NoSpaceError), and Config.Migrating is not set. The caller closes the Store.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	pc, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, schema: schemaOf(cfg.Space), log: cfg.Logger, where: whereabouts{admits: cfg.AnyDatabase}}
	pc.BeforeConnect, pc.ConnConfig.AfterConnect = s.before, s.arrive(parameters(s.schema))
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, classify("open", err)
	}
	s.pool = pool
	if err := s.checkPooler(ctx); err != nil {
		pool.Close()
		return nil, classify("open", err)
	}
	if err := s.checkSchema(ctx, cfg.Migrating); err != nil {
		pool.Close()
		return nil, err
	}
	if s.users, err = s.userPool(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// before gives a connection a name of its own (J4), and the host that answered last.
func (s *Store) before(_ context.Context, c *pgx.ConnConfig) error {
	s.hosts.follow(c)
	c.RuntimeParams["application_name"] = "quipu-" + newSession().String()
	return nil
}

// Close closes the pools. Committers are closed by their owners.
func (s *Store) Close() { s.users.Close(); s.pool.Close() }

// with lends a pooled connection to call.
func (s *Store) with(ctx context.Context, call func(*conn) error) error {
	if err := s.where.refused(); err != nil {
		return err
	}
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	defer c.Release()
	err = call(wrap(c.Conn()))
	s.moved(err)
	return err
}

// call lends a pooled connection and repeats the whole call after retryable failures (J4). The
// call must be guarded, and must forget what an earlier attempt has read.
func (s *Store) call(ctx context.Context, op string, call func(*conn) error) error {
	return retry(ctx, func() error {
		if err := s.refused(); err != nil {
			return settle(op, err)
		}
		return settle(op, s.with(ctx, call))
	})
}

// look is call for a call that only reads.
func (s *Store) look(ctx context.Context, op string, call func(*conn) error) error {
	return retry(ctx, func() error { return settleRead(op, s.with(ctx, call)) })
}

// query runs one reading statement on the pool. reset, if any, forgets what an earlier attempt
// has read.
func (s *Store) query(ctx context.Context, name string, reset func(), visit func(row) error, params ...[]byte) error {
	return s.look(ctx, name, func(c *conn) error {
		if reset != nil {
			reset()
		}
		return c.query(ctx, name, visit, params...)
	})
}

// readAll reads the rows of one statement on the pool.
func readAll[T any](
	ctx context.Context, s *Store, name string, read func(row) (T, error), params ...[]byte,
) (all []T, err error) {
	err = s.query(ctx, name, func() { all = nil }, into(&all, read), params...)
	return all, err
}

// into collects rows.
func into[T any](all *[]T, read func(row) (T, error)) func(row) error {
	return func(v row) error {
		x, err := read(v)
		if err == nil {
			*all = append(*all, x)
		}
		return err
	}
}

// readOne reads the one row of a statement on the pool, if it is there.
func readOne[T any](
	ctx context.Context, s *Store, name string, read func(row) (T, error), params ...[]byte,
) (x T, found bool, err error) {
	all, err := readAll(ctx, s, name, read, params...)
	if err != nil || len(all) == 0 {
		return x, false, err
	}
	return all[0], true, nil
}

// change runs one writing statement on the pool. It commits by itself and returns one number.
func (s *Store) change(ctx context.Context, name string, params ...[]byte) (n int, err error) {
	err = s.call(ctx, name, func(c *conn) error {
		n = 0
		return c.query(ctx, name, func(v row) error { n = int(v.int(0)); return nil }, params...)
	})
	return n, err
}
