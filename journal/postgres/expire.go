package postgres

import (
	"context"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Expire turns closed jobs whose time has passed into tombstones, removes their open rows, ends
// old tombstones, and drops unclaimed dead letters beyond their bound: at most limit rows of each
// table, in one transaction. It skips jobs that another transaction has locked; the next call
// takes them.
func (s *Store) Expire(ctx context.Context, limit int) (more bool, err error) {
	limit = min(limit, store.MaxSweep)
	err = s.call(ctx, "expire", func(c *conn) (err error) {
		more, err = s.expire(ctx, c, int64(limit))
		return err
	})
	return more && err == nil, err
}

func (s *Store) expire(ctx context.Context, c *conn, limit int64) (more bool, err error) {
	full := func(v row) error { more = more || v.int(0) >= limit; return nil }
	var open []journal.JobID
	var strays int64
	stay := pInt(store.TombstoneAge.Microseconds())
	err = c.run(
		ctx, step{name: "begin"}, step{"expire_mark", [][]byte{pInt(limit), stay}, full},
		step{"expire_floor", [][]byte{pInt(limit), pInt(partitionJobs)}, nil},
		step{"expire_end", [][]byte{pInt(limit), stay, pInt(partitionJobs)}, full},
		step{"expire_strays", [][]byte{pInt(store.MaxUnclaimed), pInt(store.MaxUnclaimedBytes), pInt(limit)}, func(v row) error {
			strays = v.int(0)
			return full(v)
		}},
		step{"expire_take", [][]byte{pInt(limit)}, func(v row) error { open = append(open, v.job(0)); return nil }},
	)
	if err != nil {
		abandon(ctx, c)
		return false, settleRead("expire", err)
	}
	more = more || int64(len(open)) >= limit
	var steps []step
	if ids := pUUIDs(open); len(open) > 0 {
		steps = []step{{"expire_open", [][]byte{ids, pInt(limit)}, full}, {"expire_cleared", [][]byte{ids, stay}, nil}}
	}
	err = c.run(ctx, append(steps, step{name: "commit"})...)
	if err != nil && !c.idle() {
		abandon(ctx, c)
	}
	if err == nil && strays > 0 {
		s.log.Warn("old dead letters of messages that belong to nothing were dropped", "dropped", strays, "kept", store.MaxUnclaimed)
	}
	return more, err
}
