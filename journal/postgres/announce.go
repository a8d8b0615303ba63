package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu/collation"
)

const (
	// announceEvery is the time between two announcements of a process. Those that wait
	// for each other's commits are few then: NOTIFY has a lock that all transactions with
	// one share, until they have committed.
	announceEvery = time.Second
	// announceSoon is how soon a row is due that is announced, by this machine's clock.
	announceSoon = 500 * time.Millisecond
)

// announces says whether the batch announces that it leaves something due which nobody
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

// announce says whether it is time for another announcement, and takes it.
func (s *Store) announce() bool {
	now, last := time.Now().UnixNano(), s.announced.Load()
	return now-last >= int64(announceEvery) && s.announced.CompareAndSwap(last, now)
}

// Announced implements store.Engine, by LISTEN on a connection of its own.
func (s *Store) Announced(ctx context.Context, told func()) error {
	_, raw, err := s.dial(ctx, newSession())
	if err != nil {
		return fmt.Errorf("listen for announcements: %w", err)
	}
	defer closeSoon(raw)
	if _, err := raw.Exec(ctx, "LISTEN "+pgx.Identifier{s.schema}.Sanitize()); err != nil {
		return fmt.Errorf("listen for announcements: %w", err)
	}
	told() // what came before
	for {
		if _, err := raw.WaitForNotification(ctx); err != nil {
			return fmt.Errorf("listen for announcements: %w", err)
		}
		told()
	}
}
