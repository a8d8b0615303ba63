package repair

import (
	"errors"
	"fmt"
	"iter"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// Difference is one thing in the tables that is not what the journal gives.
type Difference struct {
	journal.Difference
	// Left says why the journal cannot give it back, and what to do; "": a repair rebuilds it.
	Left string
}

// Case is a job, read and replayed, with what a repair of it writes.
type Case struct {
	collation.Repairing
	// Broken is the law that the journal itself breaks, "" for none.
	Broken string
	// Found are what the tables have otherwise, at most replay.MaxDifferences; Unlisted counts the
	// others.
	Found    []Difference
	Unlisted int

	tables  *store.Stored
	beside  *replay.Attachments
	job     *replay.Job
	flow    *flow.Flow // nil: rows that need it are left
	mode    collation.Mode
	now     collation.Micros // of the last entry
	main    map[int64]*journal.Entry
	effects map[journal.Digest][]*journal.Entry
}

// Read reads the tables and the journal of a job, compares them, and decides what a repair
// writes. mode is that of the engine that would write it. Errors are those of the records.
func Read(s *store.Stored, records iter.Seq2[journal.Record, error], mode collation.Mode) (*Case, error) {
	x := &Case{tables: s, mode: mode, main: map[int64]*journal.Entry{}, effects: map[journal.Digest][]*journal.Entry{}}
	x.Stored = s.Job
	header, tables := s.Replay()
	x.job = replay.New(header, replay.KeepOutputs)
	var err error
	if x.beside, err = replay.ReadAttachments(s.Attachments); err != nil {
		return nil, err
	}
	x.beside.Whole = true
	report, err := replay.Verify(header, tables, x.beside, func(yield func(journal.Record, error) bool) {
		for r, err := range records {
			if err == nil {
				x.remember(r)
			}
			if !yield(r, err) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	x.Unlisted = report.Unlisted
	if b := report.Broken; b != nil {
		x.Broken = b.String()
	} else if x.beside.Definition != nil {
		if x.flow, err = flow.FromCanonical(x.beside.Definition); err != nil {
			return nil, err
		}
	}
	x.decide(report.Differences)
	return x, nil
}

// remember keeps what a repair needs of an entry. One that cannot be read is a violation, and is
// reported as such.
func (x *Case) remember(r journal.Record) {
	r.Job = x.Stored.ID
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

// Refused says why the job cannot be repaired, and what to do; nil: it can be.
func (x *Case) Refused() error {
	switch state := x.Stored.State; {
	case state == journal.JobOpen:
		return errors.New("it is open: only a quarantined or a closed job is repaired")
	case state == journal.JobExpired:
		return errors.New("it has expired")
	case x.Broken != "":
		return fmt.Errorf("its journal breaks a law, %s: restore it from a backup", x.Broken)
	case x.Unlisted > 0:
		return fmt.Errorf("%d differences, the limit is %d: restore its tables from a backup", len(x.Found)+x.Unlisted, replay.MaxDifferences)
	case len(x.Found) == 0 && state != journal.JobQuarantined:
		return errors.New("its tables are what its journal gives")
	}
	for i := range x.Found {
		if d := &x.Found[i]; d.Left != "" {
			return fmt.Errorf("%s %s: %s", d.Table, d.Row, d.Left)
		}
	}
	return nil
}

// Guards are the rows that the decision read: a repair is decided again if one has changed.
func (x *Case) Guards() []store.RowGuard {
	var out []store.RowGuard
	for g, r := range x.tables.Rows {
		out = append(out, store.RowGuard{GUID: g, Rev: r.Rev})
	}
	return out
}

// decide goes through the differences, and notes what a repair writes for each row once.
func (x *Case) decide(differences []replay.Difference) {
	x.Semaphore = x.job.Semaphore
	x.State = journal.JobOpen
	if x.job.ClosedAt > 0 {
		x.State = x.job.Close.State
	}
	seen := map[[2]string]string{}
	for i := range differences {
		d := &differences[i]
		row := [2]string{d.Table, d.Row}
		why, again := seen[row]
		if d.Table == replay.TableJobs {
			why = ownColumn(d.Column)
		} else if !again {
			why = x.fix(d)
			seen[row] = why
		}
		x.Differences = append(x.Differences, d.Difference)
		x.Found = append(x.Found, Difference{Difference: d.Difference, Left: why})
	}
	x.release()
}

// ownColumn says why a column of the job is left; "": it is rebuilt.
func ownColumn(column string) string {
	switch column {
	case "state", "semaphore", "head_hash":
		return ""
	case "closed_seq", "tasks_seq":
		return "it says which entry closed the job: restore it from a backup"
	}
	return "it names another job: restore it from a backup"
}

// fix notes what is written for one row. It returns why the row is left, or "".
func (x *Case) fix(d *replay.Difference) string {
	if x.Broken != "" {
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
		if _, stored := x.tables.ResolvedWaits[d.GUID]; stored {
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
