package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quipu-journal/quipu/collation"
)

const (
	// announceEvery is the time between two announcements of a process. Transactions with a
	// NOTIFY take one shared lock until they have committed, so they must be few.
	announceEvery = time.Second
	// announceSoon: a row due within this time, by this machine's clock, is announced.
	announceSoon = 500 * time.Millisecond
)

// announces says whether the batch should announce that it leaves a due row which nobody
// publishes (W9).
func (s *Store) announces(w *writes) bool {
	soon := collation.Micros(time.Now().Add(announceSoon).UnixMicro())
	for _, r := range w.rows {
		if x := r.after; x != nil && x.NextAt != collation.Never && x.NextAt <= soon && x.Holder == "" && x.Held == "" {
			return s.announce()
		}
	}
	return false
}

// announce says whether the process may announce again, and if so counts this one.
func (s *Store) announce() bool {
	now, last := time.Now().UnixNano(), s.announced.Load()
	return now-last >= int64(announceEvery) && s.announced.CompareAndSwap(last, now)
}

// Announced implements store.Engine. It LISTENs on a connection of its own.
func (s *Store) Announced(ctx context.Context, told func()) error {
	c, err := s.dial(ctx)
	if err != nil {
		return fmt.Errorf("listen for announcements: %w", err)
	}
	defer c.leave()
	if _, err := c.raw.Exec(ctx, "LISTEN "+pgx.Identifier{s.schema}.Sanitize()); err != nil {
		return fmt.Errorf("listen for announcements: %w", err)
	}
	told() // for what came before
	for {
		switch err := s.hear(ctx, c.raw, quietTime); {
		case err == nil:
			told()
		case !errors.Is(err, errQuiet):
			return fmt.Errorf("listen for announcements: %w", err)
		}
	}
}

// errQuiet says that nothing was announced for a while, on a connection that is well.
var errQuiet = errors.New("nothing was announced")

// quietTime is how long an announcement is waited for before the connection is tried: the server
// may have gone without a word, or take no writes any more, and then nobody announces there.
const quietTime = 15 * time.Second

// hear waits for an announcement, and tries the connection if none has come for so long.
func (s *Store) hear(ctx context.Context, raw *pgx.Conn, quiet time.Duration) error {
	within, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	_, err := raw.WaitForNotification(within)
	if err == nil || ctx.Err() != nil || within.Err() == nil {
		return err
	}
	within, cancel = context.WithTimeout(ctx, s.cfg.ConnectTimeout)
	defer cancel()
	err = pgconn.ValidateConnectTargetSessionAttrsReadWrite(within, raw.PgConn())
	return cmp.Or(err, errQuiet)
}
