package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/internal/store"
)

//go:embed partitions/partition.sql
var partitionText string

const (
	// partitionJobs is the number of job numbers in a partition of the history (W10). Partition p
	// begins at p · partitionJobs.
	partitionJobs = 10_000_000
	// partitionsAhead is how many partitions exist beyond that of the newest job of a class.
	partitionsAhead = 2
	// turnMargin is the least number of unused numbers in a partition when the next one is opened
	// early, so that it is not filled meanwhile.
	turnMargin = partitionJobs / 10
	// ownerWait bounds how long making and dropping partitions waits for a lock.
	ownerWait = "2s"
)

// tenure is the state of one class of retention.
type tenure struct {
	class  int
	used   bool  // a number was drawn
	last   int64 // the last one
	newest int64 // the newest partition that may have jobs
	opened int64 // when that was opened; 0: not recorded yet
	made   int64 // the last partition that exists, -1 for none
}

// due says what a class needs: partitions to make, the opening of the newest one to record, or
// the next one to open early because the time of this one is over (W11). An early opening is not
// recorded at once: whoever drew a number of the old partition may have begun later, and must be
// older than the transaction that records it (retire_look).
func (t *tenure) due(now int64) (missing []int64, opened, turn bool) {
	ahead := t.newest
	if t.used {
		ahead += partitionsAhead
	}
	for p := max(t.made+1, t.newest); p <= ahead; p++ {
		missing = append(missing, p)
	}
	every := classes[t.class].every.Microseconds()
	opened = t.used && t.opened == 0
	turn = t.used && !opened && every > 0 && now-t.opened >= every && t.made > t.newest &&
		t.last%partitionJobs < partitionJobs-turnMargin
	return missing, opened, turn
}

// Extend makes the missing partitions of each class: that of its newest job and two beyond. It
// also opens the next partition of a class when the time of the newest is over. Its transaction
// is short and holds up no other. store.ErrPartition or store.ErrOwner: another process must do
// it.
func (s *Store) Extend(ctx context.Context) error {
	return s.call(ctx, "extend", func(c *conn) error {
		text, err := c.extension(ctx)
		if err != nil || text == "" {
			return err
		}
		err = s.asOwner(ctx, c, func() error { return c.extend(ctx, s.migrateLock()) })
		switch {
		case err == nil:
			s.log.Info("partitions of the history were made, or opened")
		case errors.Is(err, store.ErrOwner):
			err = unmade{err}
		}
		return err
	})
}

// unmade is why Extend did nothing. There may be room for new jobs yet: it is made long before it
// is needed.
type unmade struct{ error }

// Error says what is missing.
func (e unmade) Error() string {
	return "the next partitions of the history are not made or opened, and one has room for 10 million jobs: run `quipu migrate` each day; " + e.error.Error()
}

// Unwrap makes it a store.ErrPartition, too.
func (e unmade) Unwrap() []error { return []error{store.ErrPartition, e.error} }

// alone runs do under a lock that the session keeps meanwhile, and which one process has at a time;
// where another has it, nothing is to be done.
func (s *Store) alone(ctx context.Context, c *conn, what string, do func() error) error {
	key, mine := pText("quipu "+what+" "+s.schema), false
	err := c.query(ctx, "alone_lock", func(v row) error { mine = v.bool(0); return nil }, key)
	if err != nil || !mine {
		return err
	}
	// at the latest the end of the session unlocks
	defer func() { _ = c.query(context.WithoutCancel(ctx), "alone_unlock", nil, key) }()
	return do()
}

// asOwner runs do in a transaction that acts as the owner of the tables, so that the owner owns
// what it makes.
func (s *Store) asOwner(ctx context.Context, c *conn, do func() error) error {
	owner, err := c.owner(ctx)
	if err != nil {
		return err
	}
	return c.between(ctx, "BEGIN; SET LOCAL lock_timeout = '"+ownerWait+"'; SET LOCAL ROLE "+owner, do)
}

// extend does what is due under the migration lock, so that no other process does it too.
func (c *conn) extend(ctx context.Context, lock string) error {
	if err := c.exec(ctx, lock); err != nil {
		return err
	}
	text, err := c.extension(ctx)
	if err != nil || text == "" {
		return err
	}
	owner, err := c.owner(ctx)
	if err != nil {
		return err
	}
	return c.exec(ctx, "SET LOCAL ROLE "+owner+";"+text)
}

// owner returns the owner of the tables, quoted: store.ErrOwner if this login may not act as the
// owner.
func (c *conn) owner(ctx context.Context) (name string, err error) {
	mine := false
	err = c.query(ctx, "partitions_owner", func(v row) error { mine, name = v.bool(0), v.text(1); return nil })
	if err == nil && !mine {
		err = fmt.Errorf("%w: give it the role %s", store.ErrOwner, name)
	}
	return name, err
}

// extension returns the SQL for what is due, "" for nothing.
func (c *conn) extension(ctx context.Context) (string, error) {
	tenures, now, err := c.tenures(ctx)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for i := range tenures {
		t := &tenures[i]
		missing, opened, turn := t.due(now)
		for _, p := range missing {
			text.WriteString(strings.NewReplacer(
				"{p}", strconv.FormatInt(p, 10),
				"{from}", strconv.FormatInt(p*partitionJobs, 10),
				"{to}", strconv.FormatInt((p+1)*partitionJobs, 10),
			).Replace(partitionText))
		}
		if opened {
			fmt.Fprintf(&text, "UPDATE partitions SET opened = %d, opener = pg_current_xact_id() WHERE p = %d;", now, t.newest)
		}
		if turn {
			fmt.Fprintf(&text, "SELECT setval('%s', %d);", classes[t.class].sequence(), (t.newest+1)*partitionJobs)
		}
	}
	return text.String(), nil
}

// tenures reads the state of each class, without a lock, and the clock.
func (c *conn) tenures(ctx context.Context) (out []tenure, now int64, err error) {
	first := int64(0)
	params := arrays(classes, func(c *columns, x class) {
		c.int(first)
		c.text(x.sequence())
		first += classNumbers
	})
	err = c.query(ctx, "partitions_look", func(v row) error {
		t := tenure{
			class: len(out), used: !v.null(0), last: v.int(0), newest: v.int(1), opened: v.int(2), made: v.int(3),
		}
		if v.null(3) {
			t.made = -1
		}
		out, now = append(out, t), v.int(4)
		return nil
	}, append(params, pInt(partitionJobs), pInt(classNumbers))...)
	return out, now, err
}
