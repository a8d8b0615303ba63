package collation

import (
	"time"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Inception is what the starter of a job knows (1.11).
type Inception struct {
	Space      string
	Key        string
	Generation int64
	Flow       journal.FlowRef
	Trigger    string // the activity's name
	Input      []byte // canonical
	Trace      string
	Tags       []string // sorted
	Now        Micros
	At         Micros        // when it is to start; Never, or a time that has passed: at once
	Keep       time.Duration // of the flow: how long the closed job is kept; 0: for good
	Publish    bool          // the starter publishes the row itself, at once
	// Order is set for a job that an await, or a function, starts: the row of its
	// start, which stands already, and Parent, who ordered it.
	Order  *Row
	Parent *journal.Parent
	// From is set for a job that resumes another, with Generation.
	From *journal.From
	// Active says that the flow's version holds only while it is the one for new
	// jobs.
	Active bool
}

// Holder is what has a key: a job or, in state expired, its tombstone; without an id
// one that has ended, in the highest generation that it may have had (W11).
type Holder struct {
	ID         journal.JobID
	Generation int64
	State      journal.JobState
	Flow       journal.FlowRef
	Input      []byte // of a tombstone nil
	// Floor is that of the space: the next generation is above it, too.
	Floor int64
}

// Begin decides on a start (1.11): nil where a job has the key, otherwise the plan
// of its inception, in the generation behind that of a tombstone.
func Begin(in Inception, held *Holder, mode Mode) *Plan {
	in.Generation = 1
	if held != nil {
		if held.State != journal.JobExpired {
			return nil
		}
		in.Generation = held.Generation + 1
	}
	return Incept(in, mode)
}

// Born is the state in which a job begins, with its inception applied: all that
// there is of it. Head has no hash yet.
func Born(p *Plan, f *flow.Flow) *State {
	e := p.Entry
	s := &State{
		Job: Job{
			ID: e.Job, Space: e.Space, Key: e.Key, Generation: e.Generation, Flow: *e.Flow, State: journal.JobOpen,
			Started: Micros(e.Time), Tags: e.Tags, Trace: e.Trace, Parent: e.Parent, From: e.From,
		},
		Flow: f, Now: Micros(e.Time),
		Instances: map[InstanceKey]*Instance{}, Receipts: map[journal.GUID]*Receipt{}, Rows: map[journal.GUID]*Row{},
		Results: map[InstanceKey]*flow.Result{}, Unfinished: map[journal.GUID]bool{}, Waits: map[journal.GUID]*Wait{},
		Latest: map[string]*flow.Result{}, Keys: map[string]journal.JobID{}, Whole: true, AllRows: true,
	}
	s.Apply(p)
	return s
}

// FoldStart decides the start message of a job that is just being begun, so that
// its first steps commit with its inception (C11, W9). Nil: the message goes its
// own way, since it needs what other jobs have, or would not be done.
func FoldStart(s *State, mode Mode) *Plan {
	start := s.Job.ID.Start()
	if row := s.Rows[start]; mode.Stepwise || !mode.Fold || row != nil && row.NextAt > s.Now && row.Publication == 0 {
		return nil
	}
	m := &Message{
		Kind: journal.MessageStart, Job: s.Job.ID, GUID: start, Row: start, Activity: s.Flow.Trigger().Name, DAD: RootDAD,
	}
	for range maxFoldLoads {
		p, need := Step(s, m, mode)
		switch {
		case need == nil && p.Done && p.Outcome == Handled:
			return p
		case need == nil || !s.absent(need):
			return nil
		}
	}
	return nil
}

// maxFoldLoads bounds how often a start may find that something is not there.
const maxFoldLoads = 32

// absent notes of a job that is being born that what the need names is not there:
// false where it is not the job's own.
func (s *State) absent(n *Need) bool {
	if len(n.Keys) > 0 || len(n.Past) > 0 || len(n.Pauses) > 0 || len(n.Ends) > 0 || n.Close {
		return false
	}
	for _, k := range n.Instances {
		know(s.Instances, k)
	}
	for _, k := range n.Results {
		know(s.Results, k)
	}
	for _, g := range n.Effects {
		know(s.Unfinished, g)
	}
	for _, g := range n.Waits {
		know(s.Waits, g)
	}
	for _, a := range n.Latest {
		know(s.Latest, a)
	}
	for _, k := range n.Rows {
		if k.Job != s.Job.ID {
			return false
		}
		know(s.Rows, k.GUID)
	}
	return true
}

// know makes a key a member that was asked for and is not there.
func know[K comparable, V any](m map[K]V, k K) {
	if _, known := m[k]; !known {
		var none V
		m[k] = none
	}
}

// Incept gives the plan of the starter's own transaction: job row, trigger
// ledger, receipt, entry `created`, dispatch row. The job's id is the GUID of
// its start message.
func Incept(in Inception, mode Mode) *Plan {
	id := NewJobID(in.Space, in.Key, in.Generation)
	if in.Order != nil {
		id = in.Order.Job
	}
	key := InstanceKey{Activity: in.Trigger, DAD: RootDAD}
	row := Row{
		GUID: id.Start(), Job: id, Kind: journal.MessageStart, Activity: in.Trigger, DAD: RootDAD,
		NextAt: in.Now, Origin: 1,
	}
	dispatched := journal.Dispatched{GUID: row.GUID, Kind: journal.MessageStart, Activity: in.Trigger, DAD: string(RootDAD)}
	switch {
	case in.At > in.Now:
		row.NextAt, dispatched.At = in.At, int64(in.At)
	case in.Publish:
		row.published(in.Now, &mode)
	}
	one := int64(1)
	e := &journal.Entry{
		Space: in.Space, Job: id, Key: in.Key, Generation: in.Generation, Seq: 1,
		Kind: journal.KindCreated, GUID: id.Start(), Activity: in.Trigger, DAD: string(RootDAD),
		Marks:      []journal.Mark{journal.MarkEntered, journal.MarkWork},
		Ledger:     journal.Ledger(TriggerBorn),
		Receipt:    journal.Ledger(StartBorn),
		Semaphore:  &one,
		Dispatched: []journal.Dispatched{dispatched},
		Flow:       &in.Flow, Input: in.Input, Tags: in.Tags, Parent: in.Parent, From: in.From,
		Writer: mode.Writer, Build: mode.Build, Time: int64(in.Now), Trace: in.Trace,
	}
	p := &Plan{
		Job: id, Message: id.Start(), Outcome: Handled, Entry: e,
		Ledgers:   []LedgerWrite{{Key: key, New: true, After: TriggerBorn, ResultSeq: 1, Code: CodeOK}},
		Receipt:   &ReceiptWrite{GUID: id.Start(), New: true, After: StartBorn, Verdict: journal.VerdictHandled, Seq: 1},
		Semaphore: journal.SemaphoreMove{After: 1},
		NewState:  journal.JobOpen,
		Active:    in.Active,
		Keep:      in.Keep,
	}
	if in.Order == nil {
		p.Insert = []Row{row}
		return p
	}
	// It stands, as the row of the start: addressed to the trigger now, and
	// nobody takes it back any more.
	standing := *in.Order
	standing.Activity, standing.DAD, standing.Origin = row.Activity, row.DAD, row.Origin
	standing.Sender, standing.Undo = journal.JobID{}, false
	standing.Rev++
	p.Update = []Row{standing}
	return p
}

// published sets the row to what it is once its first publication of this turn
// went out: the committer publishes right after its commit, and the row is due
// again when the message should long have been handled (T2).
func (r *Row) published(now Micros, mode *Mode) {
	r.Publication++
	r.PublishedAt = now
	r.TurnSent = r.Turn
	r.NextAt = now + mode.Resend
	r.Session = mode.Session
}
