package quipu

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/repair"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// ErrRepair says that a job cannot be repaired: the journal itself breaks a law, a row cannot be
// rebuilt from it, or the job is open. Nothing was changed.
var ErrRepair = errors.New("refused to repair")

// Difference is one thing in the tables of a job that is not what its journal gives. Without a
// Column it is the whole row: Stored is "" for one that is missing, Journal for one that must not
// stand. Long values are cut. Left says why the journal cannot give it back, and what to do; "":
// Repair rebuilds it.
type Difference struct {
	journal.Difference

	Left string
}

// Findings are what Fsck found out about one job.
type Findings struct {
	Job   Job
	State journal.JobState // as stored
	// Broken is the law that the journal itself breaks, "" for none. Then the tables cannot be
	// rebuilt.
	Broken string
	// Differences are at most 1 000; Unlisted counts the others.
	Differences []Difference
	Unlisted    int
}

// Fsck compares the tables of a job with its journal (S11). It only reads, in one snapshot, and
// it needs no more than read rights. Errors: ErrNotFound, ErrTombstone, or the store's.
func (o Operator) Fsck(ctx context.Context, job journal.JobID) (Findings, error) {
	x, err := o.examine(ctx, job)
	if err != nil {
		return Findings{}, err
	}
	return findings(x), nil
}

// maxRepairs bounds how often a repair is decided again because the job has changed.
const maxRepairs = 5

// Repair rebuilds the tables of a job from its journal, never the other way round (S11). It
// writes everything in one transaction, with an entry that holds the difference, who and why.
// Then the job goes on: it is open again if the journal says so, and its rows are due. The
// findings are those before the repair. Errors: ErrNotFound; ErrTombstone; ErrRepair, with the findings;
// ErrStale if the job changed all the time; or the store's: with ErrUnavailable nothing was
// changed, with ErrUnknown it may have been.
func (o Operator) Repair(ctx context.Context, job journal.JobID, who Who, reason Reason) (Findings, error) {
	if err := o.rt.proc.Covers("to repair a job"); err != nil {
		return Findings{}, err
	}
	for n := 1; ; n++ {
		x, err := o.examine(ctx, job)
		if err != nil {
			return Findings{}, err
		}
		f := findings(x)
		if err := x.Refused(); err != nil {
			return f, fmt.Errorf("job %.80q: %w: %w", f.Job.Key, ErrRepair, err)
		}
		x.Who, x.Reason = wire.CutText(string(who)), wire.CutText(string(reason))
		err = o.rt.committer.Repair(ctx, &x.Repairing, x.Guards())
		switch {
		case errors.Is(err, collation.ErrAction):
			return f, fmt.Errorf("job %.80q: %w: %w", f.Job.Key, ErrRepair, err)
		case err == nil, n == maxRepairs, !errors.Is(err, ErrStale):
			return f, err
		}
	}
}

// examine reads a job, and decides what a repair of it would write.
func (o Operator) examine(ctx context.Context, id journal.JobID) (x *repair.Case, err error) {
	cfg := o.rt.committer.Config()
	read := func(s *store.Stored, records iter.Seq2[journal.Record, error]) (err error) {
		if s.Job.State == journal.JobExpired { // there is nothing to compare its tombstone with
			return ErrTombstone
		}
		x, err = repair.Read(s, records, cfg.Mode())
		return err
	}
	if err := o.rt.store.Audit(ctx, id, read); err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	return x, nil
}

func findings(x *repair.Case) Findings {
	out := Findings{Job: Job{ID: x.Stored.ID, Key: x.Stored.Key}, State: x.Stored.State, Broken: x.Broken, Unlisted: x.Unlisted}
	for _, d := range x.Found {
		out.Differences = append(out.Differences, Difference(d))
	}
	return out
}
