package quipu

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/wire"
)

// ErrRepair says that a job cannot be repaired: the journal itself breaks a law, a row cannot be
// rebuilt from it, or the job is open. Nothing was changed.
var ErrRepair = errors.New("refused to repair")

// Difference is one thing in the tables of a job that is not what its journal gives. Without a
// Column it is the whole row: Stored is "" for one that is missing, Journal for one that must not
// stand. Long values are cut.
type Difference struct {
	Table, Row, Column, Stored, Journal string
	// Left says why the journal cannot give it back, and what to do; "": Repair rebuilds it.
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
// it needs no more than read rights. Errors: ErrNotFound, or the store's.
func (o Operator) Fsck(ctx context.Context, job journal.JobID) (Findings, error) {
	x, err := o.examine(ctx, job)
	if err != nil {
		return Findings{}, err
	}
	return x.findings, nil
}

// maxRepairs bounds how often a repair is decided again because the job has changed.
const maxRepairs = 5

// Repair rebuilds the tables of a job from its journal, never the other way round (S11). It
// writes everything in one transaction, with an entry that holds the difference, who and why.
// Then the job goes on: it is open again if the journal says so, and its rows are due. The
// findings are those before the repair. Errors: ErrNotFound; ErrRepair, with the findings;
// ErrStale if the job changed all the time; or the store's: with ErrUnavailable nothing was
// changed, with ErrUnknown it may have been.
func (o Operator) Repair(ctx context.Context, job journal.JobID, who Who, reason Reason) (Findings, error) {
	for n := 1; ; n++ {
		x, err := o.examine(ctx, job)
		if err != nil {
			return Findings{}, err
		}
		if err := x.repairable(); err != nil {
			return x.findings, fmt.Errorf("job %.80q: %w: %w", x.stored.Job.Key, ErrRepair, err)
		}
		x.Who, x.Reason = wire.CutText(string(who)), wire.CutText(string(reason))
		err = o.rt.committer.Repair(ctx, &x.Repairing, x.guards())
		switch {
		case errors.Is(err, collation.ErrAction):
			return x.findings, fmt.Errorf("job %.80q: %w: %w", x.stored.Job.Key, ErrRepair, err)
		case err == nil, n == maxRepairs, !errors.Is(err, ErrStale):
			return x.findings, err
		}
	}
}

// examined is a job, read and replayed, with what a repair of it writes.
type examined struct {
	collation.Repairing
	findings Findings
	stored   *store.Stored
	report   *replay.Report
	job      *replay.Job
	flow     *flow.Flow
	now      collation.Micros
	main     map[int64]*journal.Entry
	effects  map[journal.Digest][]*journal.Entry
	payload  func(journal.Digest) ([]byte, error)
}

// examine reads the job and decides what a repair of it would write.
func (o Operator) examine(ctx context.Context, id journal.JobID) (*examined, error) {
	x := &examined{main: map[int64]*journal.Entry{}, effects: map[journal.Digest][]*journal.Entry{}}
	x.payload = func(d journal.Digest) ([]byte, error) { return o.rt.store.Payload(ctx, id, d) }
	if err := o.rt.store.Audit(ctx, id, x.read); err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	j := &x.stored.Job
	x.findings = Findings{Job: Job{ID: id, Key: j.Key}, State: j.State, Unlisted: x.report.Unlisted}
	if b := x.report.Broken; b != nil {
		x.findings.Broken = b.String()
	}
	if text, err := o.rt.store.Flow(ctx, j.Flow.Name, j.Flow.Version); err == nil {
		x.flow, _ = flow.FromCanonical(text) // without it rows that need it are left
	} else if !errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("job %s: flow %s version %s: %w", id, j.Flow.Name, j.Flow.Version, err)
	}
	x.decide()
	return x, nil
}

// read reads the tables and the journal, and compares them.
func (x *examined) read(s *store.Stored, records iter.Seq2[journal.Record, error]) (err error) {
	x.stored = s
	header, _ := s.Replay()
	x.job = replay.New(header, replay.KeepOutputs)
	x.report, err = s.Verify(nil, func(yield func(journal.Record, error) bool) {
		for r, err := range records {
			if err == nil {
				x.remember(r)
			}
			if !yield(r, err) {
				return
			}
		}
	})
	return err
}

// remember keeps what a repair needs of an entry. One that cannot be read is a violation, and is
// reported as such.
func (x *examined) remember(r journal.Record) {
	r.Job = x.stored.Job.ID
	e, err := journal.Decode(r)
	if err != nil || x.job.Apply(r) != nil {
		return
	}
	x.now = max(x.now, collation.Micros(e.Time))
	switch {
	case r.Chain.IsZero():
		x.main[r.Seq] = e
		if r.Seq > x.Head.Seq {
			x.Head = journal.Head{Seq: r.Seq, Hash: r.Hash}
		}
	case e.Effect != nil:
		x.effects[e.Effect.Key] = append(x.effects[e.Effect.Key], e)
	}
}

// repairable says why the job cannot be repaired, or nil.
func (x *examined) repairable() error {
	switch f := &x.findings; {
	case f.State == journal.JobOpen:
		return errors.New("it is open: only a quarantined or a closed job is repaired")
	case f.State == journal.JobExpired:
		return errors.New("it has expired")
	case f.Broken != "":
		return fmt.Errorf("its journal breaks a law, %s: restore it from a backup", f.Broken)
	case f.Unlisted > 0:
		return fmt.Errorf("%d differences, the limit is %d: restore its tables from a backup", len(f.Differences)+f.Unlisted, replay.MaxDifferences)
	case len(f.Differences) == 0 && f.State != journal.JobQuarantined:
		return errors.New("its tables are what its journal gives")
	}
	for i := range x.findings.Differences {
		if d := &x.findings.Differences[i]; d.Left != "" {
			return fmt.Errorf("%s %s: %s", d.Table, d.Row, d.Left)
		}
	}
	return nil
}

// guards are the rows that the decision read.
func (x *examined) guards() []store.RowGuard {
	var out []store.RowGuard
	for g, r := range x.stored.Rows {
		out = append(out, store.RowGuard{GUID: g, Rev: r.Rev})
	}
	return out
}

// decide goes through the differences, and notes what a repair writes for each row once.
func (x *examined) decide() {
	x.Stored, x.Semaphore = x.stored.Job, x.job.Semaphore
	x.State = journal.JobOpen
	if x.job.ClosedAt > 0 {
		x.State = x.job.Close.State
	}
	seen := map[[2]string]string{}
	for i := range x.report.Differences {
		d := &x.report.Differences[i]
		row := [2]string{d.Table, d.Row}
		why, again := seen[row]
		if d.Table == replay.TableJobs {
			why = ownColumn(d.Column)
		} else if !again {
			why = x.fix(d)
			seen[row] = why
		}
		x.Differences = append(x.Differences, d.Difference)
		x.findings.Differences = append(x.findings.Differences, Difference{
			Table: d.Table, Row: d.Row, Column: d.Column, Stored: d.Stored, Journal: d.Journal, Left: why,
		})
	}
	x.release()
}

// ownColumn says why a column of the job is left; "": it is rebuilt.
func ownColumn(column string) string {
	switch column {
	case "state", "semaphore", "head_hash":
		return ""
	}
	return "it names another job: restore it from a backup"
}

// fix notes what is written for one row. It returns why the row is left, or "".
func (x *examined) fix(d *replay.Difference) string {
	if x.findings.Broken != "" {
		return "the journal breaks a law, so it is not known what the row has to be"
	}
	switch d.Table {
	case replay.TableInstances:
		return x.fixInstance(d.Key)
	case replay.TableReceipts:
		x.fixReceipt(d.GUID)
	case replay.TableDispatches:
		return x.fixRow(d.GUID)
	case replay.TableWaits:
		return x.fixWait(d.GUID)
	case replay.TableResolved:
		if _, stored := x.stored.ResolvedWaits[d.GUID]; stored {
			x.Drop.Resolved = append(x.Drop.Resolved, d.GUID)
		}
		if w, ok := x.job.Resolved()[d.GUID]; ok {
			x.Resolved = append(x.Resolved, w)
		}
	case replay.TableEffects:
		x.fixEffect(d.Effect)
	}
	return ""
}
