package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/journal/store"
)

//go:embed partitions/partition.sql
var partitionText string

const (
	// partitionJobs is how many numbers of jobs a partition of the history has (W10):
	// partition p has those from p times as many on.
	partitionJobs = 10_000_000
	// partitionsAhead is how many partitions there are to be behind that of the newest
	// job of a class.
	partitionsAhead = 2
	// turnMargin is how many numbers a partition has left, at least, when the next one is
	// opened before its time: so many are not drawn while that is done.
	turnMargin = partitionJobs / 10
	// ownerWait bounds how long making and dropping partitions waits for a lock.
	ownerWait = "2s"
)

// tenure is what there is of a class of retention.
type tenure struct {
	class  int
	used   bool  // a number was drawn
	last   int64 // the last one
	newest int64 // the newest partition that may have jobs
	opened int64 // when that was opened, 0 before it was noticed
	made   int64 // the last partition that is there, -1 for none
}

// due says what is to be done for a class: which partitions are to be made, whether it
// is to be noticed that the newest one was opened, and whether the next one is to be
// opened before this one is full, since this one's time is over (W11). Who opens it does
// not note it: who drew a number of the one before may have begun after him, and has to
// be older than the transaction that notes it (retire_look).
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

// Extend makes the partitions that are missing, of each class of retention that of its
// newest job and two behind it; and it opens the next partition of a class where the
// time of the newest is over. It does so in a short transaction that holds up no other:
// store.ErrPartition, store.ErrOwner: somebody else has to.
func (s *Store) Extend(ctx context.Context) error {
	return s.call(ctx, "extend", func(c *conn) error {
		text, err := c.extension(ctx)
		if err != nil || text == "" {
			return err
		}
		err = s.asOwner(ctx, c, func(ctx context.Context) error { return c.extend(ctx, s.migrateLock()) })
		switch {
		case err == nil:
			s.log.Info("partitions of the history were made, or opened")
		case errors.Is(err, store.ErrOwner):
			err = fmt.Errorf("%w; %w", store.ErrPartition, err)
		}
		return err
	})
}

// asOwner runs do in a transaction of its own that acts as the owner of the tables, so
// that what it makes is his, whoever makes it.
func (s *Store) asOwner(ctx context.Context, c *conn, do func(context.Context) error) error {
	owner, err := c.owner(ctx)
	if err != nil {
		return err
	}
	err = c.exec(ctx, "BEGIN; SET LOCAL lock_timeout = '"+ownerWait+"'; SET LOCAL ROLE "+owner)
	if err == nil {
		err = do(ctx)
	}
	if err == nil {
		err = c.exec(ctx, "COMMIT")
	}
	if err != nil {
		_ = c.exec(context.WithoutCancel(ctx), "ROLLBACK") // ends what is left of the transaction
	}
	return err
}

// extend does what is due under the lock of migrations: nobody else does the same.
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

// owner is who has the tables, quoted: store.ErrOwner where this login may not act as
// him.
func (c *conn) owner(ctx context.Context) (name string, err error) {
	mine := false
	err = c.query(ctx, "partitions_owner", func(v row) error { mine, name = v.bool(0), v.text(1); return nil })
	if err == nil && !mine {
		err = fmt.Errorf("%w: give it the role %s", store.ErrOwner, name)
	}
	return name, err
}

// extension is SQL for what is due, "" for nothing.
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

// tenures looks what there is of each class, without a lock, and at the clock.
func (c *conn) tenures(ctx context.Context) (out []tenure, now int64, err error) {
	first, sequences := ints(len(classes)), texts(len(classes))
	for i := range classes {
		first.int(int64(i) * classNumbers)
		sequences.text(classes[i].sequence())
	}
	err = c.query(ctx, "partitions_look", func(v row) error {
		t := tenure{class: len(out), used: !v.null(0), last: v.int(0), newest: v.int(1), opened: v.int(2), made: v.int(3)}
		if v.null(3) {
			t.made = -1
		}
		out, now = append(out, t), v.int(4)
		return nil
	}, first.value(), sequences.value(), pInt(partitionJobs), pInt(classNumbers))
	return out, now, err
}
