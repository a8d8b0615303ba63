package postgres

import (
	"context"
	_ "embed"
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
	// job.
	partitionsAhead = 2
	// extendWait bounds how long making partitions waits for a lock.
	extendWait = "2s"
)

// missing are partitions that are to be made.
type missing struct {
	numbers []int64
	// owner is the quoted name of who has the tables; mine: this login may act as him.
	owner string
	mine  bool
}

// Extend makes the partitions that are missing of those of the newest job and of the
// two behind it, in a short transaction that holds up no other: store.ErrPartition
// where the login may not act as the owner of the tables.
func (s *Store) Extend(ctx context.Context) error {
	return s.call(ctx, "extend", func(c *conn) error {
		m, err := c.missing(ctx)
		switch {
		case err != nil || len(m.numbers) == 0:
			return err
		case !m.mine:
			return fmt.Errorf("postgres: extend: %w, or give this login the role %s, whose the tables are: there is none from job number %d on",
				store.ErrPartition, m.owner, m.numbers[0]*partitionJobs)
		}
		open := "BEGIN; SET LOCAL lock_timeout = '" + extendWait + "';" + s.migrateLock()
		err = c.exec(ctx, open)
		if err == nil {
			err = c.extend(ctx)
		}
		if err == nil {
			err = c.exec(ctx, "COMMIT")
		}
		if err != nil {
			_ = c.exec(context.WithoutCancel(ctx), "ROLLBACK") // ends what is left of the transaction
			return err
		}
		s.log.Info("partitions were made", "from_job_number", m.numbers[0]*partitionJobs, "partitions", len(m.numbers))
		return nil
	})
}

// extend makes what is missing, in a transaction that holds the lock of migrations:
// nobody else makes the same. The new tables are the owner's, whoever makes them.
func (c *conn) extend(ctx context.Context) error {
	m, err := c.missing(ctx)
	if err != nil || len(m.numbers) == 0 {
		return err
	}
	text := "SET LOCAL ROLE " + m.owner + ";"
	for _, p := range m.numbers {
		text += strings.NewReplacer(
			"{p}", strconv.FormatInt(p, 10),
			"{from}", strconv.FormatInt(p*partitionJobs, 10),
			"{to}", strconv.FormatInt((p+1)*partitionJobs, 10),
		).Replace(partitionText)
	}
	return c.exec(ctx, text)
}

// missing looks for what is missing, without a lock.
func (c *conn) missing(ctx context.Context) (m missing, err error) {
	err = c.query(ctx, "partitions_missing", func(v row) error {
		m.numbers, m.mine, m.owner = append(m.numbers, v.int(0)), v.bool(1), v.text(2)
		return nil
	}, pInt(partitionJobs), pInt(partitionsAhead))
	return m, err
}
