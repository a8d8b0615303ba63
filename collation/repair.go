package collation

import "github.com/quipu-journal/quipu/journal"

// Repair is what an operator's repair writes besides rows and waits (S11). Drop is deleted
// first, then the others are inserted. The dropped rows are compared by what the plan's guard
// compares: nobody else changes them while the head of the job stands. Waits and effects are
// compared themselves.
type Repair struct {
	Drop struct {
		Instances []InstanceKey
		Receipts  []journal.GUID
		Waits     []CancelledWait
		Effects   []DroppedEffect
		Resolved  []journal.GUID
	}
	Instances []LedgerWrite
	Receipts  []ReceiptWrite
	Effects   []Effect
	Resolved  []ResolvedWait
}

// DroppedEffect is the row of an effect that is written anew. If its state or fence have changed
// since they were read, the decision is made again.
type DroppedEffect struct {
	Key   journal.Digest
	State EffectState
	Fence int64
}

// Repairing is the decision on a repair: what the journal gives, and what is stored.
type Repairing struct {
	Who, Reason string
	Differences []journal.Difference // what the entry says of it
	Stored      Job                  // as it was read; it must not have changed since
	// Head, Semaphore and State are the job's by its journal. State is the one in which it goes
	// on.
	Head      journal.Head
	Semaphore int64
	State     journal.JobState
	Rows      struct {
		Insert, Update []Row
		Delete         []journal.GUID
	}
	Waits []Wait
	Repair
}

// Repaired decides on a repair of the job that was loaded, by an entry that holds the difference
// (S11). It writes the tables as the journal gives them, and never the other way round. Errors:
// ErrStale: the job has changed since it was read, so read it again. ErrAction: it is open, so
// its messages may be on their way.
func Repaired(s *State, r *Repairing, mode Mode) (*Plan, error) {
	switch j := &s.Job; {
	case j.State != r.Stored.State || j.Semaphore != r.Stored.Semaphore || j.Head != r.Stored.Head:
		return nil, staleFor("the job has changed since it was read")
	case j.State == journal.JobOpen || j.State == journal.JobExpired:
		return nil, misfit("the job is %s: only a quarantined or a closed one is repaired", j.State)
	case j.Head.Seq != r.Head.Seq:
		return nil, misfit("the stored head is entry %d, the journal ends at entry %d", j.Head.Seq, r.Head.Seq)
	}
	of := *s
	of.Job.Head = r.Head
	start := s.Job.ID.Start()
	w := newWriter(&of, &Message{
		Kind: journal.MessageInterrupt, Job: s.Job.ID, GUID: OperatorGUID(start, ActionRepair, int(r.Head.Seq)+1),
		DAD: RootDAD,
	}, mode)
	w.key, w.p.Done = InstanceKey{DAD: RootDAD}, true
	e := w.entry(journal.KindOperator)
	e.Operator = &journal.Operator{Action: ActionRepair, Who: r.Who, Reason: r.Reason, Login: mode.Login}
	e.Repaired = r.Differences
	p := w.p
	p.Semaphore.After, p.NewState = r.Semaphore, r.State
	for _, row := range r.Rows.Update {
		row.Rev++
		p.Update = append(p.Update, row)
	}
	p.Insert, p.Delete, p.Waits, p.Repair = r.Rows.Insert, r.Rows.Delete, r.Waits, &r.Repair
	return p, nil
}
