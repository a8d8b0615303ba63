package postgres

import (
	"context"
	"slices"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// The statements that remove what belongs to jobs, each from its table: by their
// ids what is open or was, by their n what is history (W10).
var (
	expireOpen    = []string{"expire_waits", "expire_dispatches", "expire_dead_letters"}
	expireHistory = []string{"expire_woken", "expire_effects", "expire_payloads", "expire_receipts", "expire_instances", "expire_entries"}
)

// Expire removes closed jobs whose time has passed, at most limit rows of each
// table, in one transaction. A job is a tombstone from the first of them on, and
// keeps its expires_at until nothing is left of it: a process that dies in
// between leaves it to the next. Tombstones that somebody else clears are left
// to him.
func (s *Store) Expire(ctx context.Context, limit int) (more bool, err error) {
	limit = min(limit, store.MaxSweep)
	err = s.call(ctx, "expire", func(c *conn) (err error) {
		more, err = s.expire(ctx, c, int64(limit))
		return err
	})
	return more && err == nil, err
}

func (s *Store) expire(ctx context.Context, c *conn, limit int64) (more bool, err error) {
	if err := c.require(ctx, slices.Concat([]string{"begin", "expire_mark", "expire_take", "expire_done", "commit", "rollback"}, expireOpen, expireHistory)...); err != nil {
		return false, err
	}
	full := func(v row) error { more = more || v.int(0) >= limit; return nil }
	var jobs []journal.JobID
	ns := ints(0)
	err = c.run(
		ctx, step{name: "begin"}, step{"expire_mark", [][]byte{pInt(limit)}, full},
		step{"expire_take", [][]byte{pInt(limit)}, func(v row) error { jobs = append(jobs, v.job(0)); ns.int(v.int(1)); return nil }},
	)
	if err != nil || len(jobs) == 0 {
		abandon(ctx, c)
		return false, settleRead("expire", err)
	}
	more = more || int64(len(jobs)) >= limit
	ids, numbers := pUUIDs(jobs), ns.value()
	steps := make([]step, 0, len(expireOpen)+len(expireHistory)+2)
	for _, name := range expireOpen {
		steps = append(steps, step{name, [][]byte{ids, pInt(limit)}, full})
	}
	for _, name := range expireHistory {
		steps = append(steps, step{name, [][]byte{numbers, pInt(limit)}, full})
	}
	err = c.run(ctx, append(steps, step{"expire_done", [][]byte{ids, numbers}, nil}, step{name: "commit"})...)
	if err != nil && !c.idle() {
		abandon(ctx, c)
	}
	return more, err
}
