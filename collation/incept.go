package collation

import "github.com/quipu-journal/quipu/journal"

// Inception is what the starter of a job knows (1.11).
type Inception struct {
	Space      string
	Key        string
	Generation int64
	Flow       journal.FlowRef
	Trigger    string // the activity's name
	Input      []byte // canonical
	Trace      string
	Now        Micros
	Publish    bool // the starter publishes the row itself, at once
	// Child is set for a job that an await starts: its id, and its parent. The row
	// of its start stands already.
	Child  journal.JobID
	Parent *journal.Parent
}

// Incept gives the plan of the starter's own transaction: job row, trigger
// ledger, receipt, entry `created`, dispatch row. The job's id is the GUID of
// its start message.
func Incept(in Inception, mode Mode) *Plan {
	id := NewJobID(in.Space, in.Key, in.Generation)
	if in.Parent != nil {
		id = in.Child
	}
	key := InstanceKey{Activity: in.Trigger, DAD: RootDAD}
	row := Row{
		GUID: id.Start(), Job: id, Kind: journal.MessageStart, Activity: in.Trigger, DAD: RootDAD,
		NextAt: in.Now, Origin: 1,
	}
	if in.Publish {
		row.published(in.Now, mode.Resend)
	}
	e := &journal.Entry{
		Space: in.Space, Job: id, Key: in.Key, Generation: in.Generation, Seq: 1,
		Kind: journal.KindCreated, GUID: id.Start(), Activity: in.Trigger, DAD: string(RootDAD),
		Marks:      []journal.Mark{journal.MarkEntered, journal.MarkWork},
		Ledgers:    []journal.LedgerMove{{Activity: in.Trigger, DAD: string(RootDAD), After: journal.Ledger(TriggerBorn)}},
		Receipts:   []journal.ReceiptMove{{GUID: id.Start(), New: true, After: journal.Ledger(StartBorn), Verdict: journal.VerdictHandled}},
		Semaphore:  &journal.SemaphoreMove{After: 1},
		Dispatched: []journal.Dispatched{{GUID: id.Start(), Kind: journal.MessageStart, Activity: in.Trigger, DAD: string(RootDAD)}},
		Flow:       &in.Flow, Input: in.Input, Parent: in.Parent,
		Writer: mode.Writer, Build: mode.Build, Time: int64(in.Now), Trace: in.Trace,
	}
	return &Plan{
		Job: id, Message: id.Start(), Outcome: Handled, Entry: e,
		Ledgers:   []LedgerWrite{{Key: key, New: true, After: TriggerBorn, ResultSeq: 1, Code: CodeOK}},
		Receipt:   &ReceiptWrite{GUID: id.Start(), New: true, After: StartBorn, Verdict: journal.VerdictHandled, Seq: 1},
		Semaphore: journal.SemaphoreMove{After: 1},
		NewState:  journal.JobOpen,
		Insert:    []Row{row},
	}
}

// published sets the row to what it is once its first publication of this turn
// went out: the committer publishes right after its commit, and the row is due
// again when the message should long have been handled (T2).
func (r *Row) published(now, span Micros) {
	r.Publication++
	r.PublishedAt = now
	r.TurnSent = r.Turn
	r.NextAt = now + span
}
