package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

//go:embed partitions/move.sql
var moveText string

const (
	// retireMoves bounds the jobs that one call moves.
	retireMoves = 100
	// retirePage is how many jobs of a partition an archive reads at once.
	retirePage = 1000
	// retireQuiet is how long a partition must have been closed. By then a transaction that drew
	// one of its numbers has written something. Those that have not committed are waited for,
	// too.
	retireQuiet = time.Minute
)

// historyTables are the partitioned tables. A partition's entries are dropped first: while they
// are attached, the partition was not archived.
var historyTables = []string{"entries", "receipts", "instances", "effects", "payloads", "resolved_waits"}

// part is a partition in which no new job begins.
type part struct {
	p      int64
	live   int64 // below this number only tombstones are left
	closed int64 // when the next partition was opened
}

func (x *part) end() int64 { return (x.p + 1) * partitionJobs }

// archiveName returns the partition's name in an archive.
func (s *Store) archiveName(x *part) string {
	class := classOfPart(x.p)
	return fmt.Sprintf("%s-%s-%d", s.cfg.Space, classes[class].name, x.p-int64(class)*(classNumbers/partitionJobs))
}

// Retire implements store.Retention.
func (s *Store) Retire(ctx context.Context, archive store.Archive) (more bool, err error) {
	var archived error // the caller's own, not to be classified
	err = s.call(ctx, "retire", func(c *conn) error {
		err := s.alone(ctx, c, "retire", func() (err error) {
			more, err = s.retire(ctx, c, func(x *part) error {
				if archive != nil {
					archived = archive(ctx, s.archiveName(x), func(visit store.Visit) error {
						return s.eachOf(ctx, c, x, visit)
					})
				}
				return archived
			})
			return err
		})
		if archived != nil {
			return nil
		}
		return err
	})
	if archived != nil {
		return false, fmt.Errorf("postgres: retire: the partition stays: %w", archived)
	}
	return more && err == nil, err
}

// retire does a bounded part: it drops a partition or moves some jobs.
func (s *Store) retire(ctx context.Context, c *conn, archive func(*part) error) (more bool, err error) {
	var parts []part
	now := int64(0)
	err = c.query(ctx, "retire_look", func(v row) error {
		parts = append(parts, part{p: v.int(0), live: v.int(1), closed: v.int(2)})
		now = v.int(3)
		return nil
	}, pInt(classNumbers/partitionJobs), pInt(retireQuiet.Microseconds()))
	if err != nil {
		return false, err
	}
	var failed error // the first fault; other partitions are still dropped
	for i := range parts {
		x := &parts[i]
		living, err := s.living(ctx, c, x)
		switch longest := classes[classOfPart(x.p)].longest.Microseconds(); {
		case err != nil:
			return false, err
		case len(living) == 0:
			return true, errors.Join(failed, s.drop(ctx, c, x, archive))
		case longest > 0 && now-x.closed >= longest:
			moved, err := s.moveAll(ctx, c, x, living)
			more, failed = more || moved, errors.Join(failed, err)
		}
	}
	return more, failed
}

// numbered is a job with its number.
type numbered struct {
	id journal.JobID
	n  int64
}

// living lists the first jobs of a partition that are not tombstones. It also records where they
// begin, so that the tombstones before them are not read again.
func (s *Store) living(ctx context.Context, c *conn, x *part) (out []numbered, err error) {
	err = c.query(ctx, "retire_live", into(&out, func(v row) (numbered, error) {
		return numbered{v.job(0), v.int(1)}, nil
	}), pInt(x.live), pInt(x.end()), pInt(retireMoves))
	if err != nil || len(out) == 0 || out[0].n == x.live {
		return out, err
	}
	return out, s.asOwner(ctx, c, func() error {
		return c.query(ctx, "retire_seen", nil, pInt(x.p), pInt(out[0].n))
	})
}

// moveAll moves jobs that outlive their partition to the next class, each in its own transaction.
// A job that another transaction has locked, itself or a row of it, is left for the next call. A
// job that cannot be moved stays, and so does its partition.
func (s *Store) moveAll(ctx context.Context, c *conn, x *part, jobs []numbered) (more bool, failed error) {
	to := &classes[(classOfPart(x.p)+1)%len(classes)]
	moved := 0
	for _, job := range jobs {
		done := false
		err := s.asOwner(ctx, c, func() (err error) {
			done, err = s.move(ctx, c, job, to)
			return err
		})
		switch {
		case err != nil && c.pg.IsClosed():
			return false, err
		case err != nil && !repeatable(err):
			failed = errors.Join(failed, fmt.Errorf("move job %s to the partitions of class %s: %w", job.id, to.name, err))
		case err == nil && done:
			moved++
		}
	}
	if moved > 0 {
		s.log.Info("jobs that outlive their partition were moved", "partition", s.archiveName(x), "jobs", moved, "class", to.name)
	}
	return moved > 0, failed
}

// move gives a job and its history a number of another class, and checks the chains under the new
// number.
func (s *Store) move(ctx context.Context, c *conn, job numbered, to *class) (bool, error) {
	var header *collation.Job
	err := c.query(ctx, "retire_job", func(v row) error { j := s.readJob(v); header = &j; return nil }, pUUID(job.id), pInt(job.n))
	if err != nil || header == nil {
		return false, err
	}
	n := int64(0)
	if err = c.query(ctx, "retire_next", func(v row) error { n = v.int(0); return nil }, pText(to.sequence())); err != nil {
		return false, err
	}
	err = c.exec(ctx, strings.NewReplacer(
		"{id}", job.id.String(), "{from}", strconv.FormatInt(job.n, 10), "{to}", strconv.FormatInt(n, 10),
	).Replace(moveText))
	if err != nil {
		return false, err
	}
	return true, c.intact(ctx, header, n)
}

// errBroken says that the entries of a job are not intact chains.
var errBroken = errors.New("its journal is not intact: see what journal-verify says of it")

// intact checks that the entries under a number are chains (J9), and that the main chain ends at
// the head in the job's row.
func (c *conn) intact(ctx context.Context, job *collation.Job, n int64) error {
	heads := map[journal.GUID]journal.Head{}
	for r, err := range c.records(ctx, job.ID, n) {
		if err != nil {
			return err
		}
		h, known := heads[r.Chain]
		if !known {
			h.Hash = journal.Genesis(job.Space, job.ID, job.Generation, r.Chain)
		}
		next := journal.Head{Seq: h.Seq + 1, Hash: journal.Next(h.Hash, r.Body)}
		if r.Seq != next.Seq || r.Hash != next.Hash {
			return fmt.Errorf("entry %d of chain %s: %w", r.Seq, r.Chain, errBroken)
		}
		heads[r.Chain] = next
	}
	if heads[journal.MainChain] != job.Head {
		return fmt.Errorf("it ends at entry %d, and its row says %d: %w", heads[journal.MainChain].Seq, job.Head.Seq, errBroken)
	}
	return nil
}

// drop archives a partition and drops its tables. It also finishes what a process that died had
// begun.
func (s *Store) drop(ctx context.Context, c *conn, x *part, archive func(*part) error) error {
	owner, err := c.owner(ctx)
	if err != nil {
		return err
	}
	type table struct {
		name, of          string
		attached, pending bool
	}
	var tables []table
	err = c.query(ctx, "retire_tables", into(&tables, func(v row) (table, error) {
		return table{v.text(0), v.text(3), v.bool(1), v.bool(2)}, nil
	}), pTexts(historyTables), pInt(x.p))
	if err != nil {
		return err
	}
	if len(tables) > 0 && tables[0].of == historyTables[0] && tables[0].attached && !tables[0].pending {
		if err := archive(x); err != nil {
			return err
		}
	}
	if err := c.exec(ctx, "SET ROLE "+owner); err != nil {
		return err
	}
	defer func() { _ = c.exec(context.WithoutCancel(ctx), "RESET ROLE") }() // a new connection has no role set
	for _, t := range tables {
		how := " CONCURRENTLY"
		if t.pending {
			how = " FINALIZE"
		}
		if t.attached {
			if err := c.exec(ctx, "ALTER TABLE "+t.of+" DETACH PARTITION "+t.name+how); err != nil {
				return err
			}
		}
		if err := c.exec(ctx, "DROP TABLE "+t.name); err != nil {
			return err
		}
	}
	s.log.Info("a partition was dropped: all its jobs have expired", "partition", s.archiveName(x))
	return c.query(ctx, "retire_done", nil, pInt(x.p))
}

// eachOf visits the jobs of a partition, in the order of their numbers.
func (s *Store) eachOf(ctx context.Context, c *conn, x *part, visit store.Visit) error {
	type tombstone struct {
		job  collation.Job
		n    int64
		flow journal.Digest
	}
	for after := x.p*partitionJobs - 1; ; {
		var page []tombstone
		err := c.query(ctx, "retire_jobs", func(v row) error {
			page = append(page, tombstone{collation.Job{
				ID: v.job(0), Space: s.cfg.Space, Key: v.text(1), Generation: v.int(2), State: journal.JobExpired,
				Head: journal.Head{Seq: v.int(3), Hash: v.digest(4)},
				Flow: journal.FlowRef{Name: v.text(7), Version: v.text(8)},
			}, v.int(5), v.digest(6)})
			return nil
		}, pInt(after), pInt(x.end()), pInt(retirePage))
		if err != nil {
			return err
		}
		for i := range page {
			b := &page[i]
			if err := visit(&b.job, b.flow, c.attachments(ctx, &b.job.Flow, b.n),
				c.records(ctx, b.job.ID, b.n)); err != nil {
				return err
			}
			after = b.n
		}
		if len(page) < retirePage {
			return nil
		}
	}
}
