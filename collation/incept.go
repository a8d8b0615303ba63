package collation

import (
	"time"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Inception is the input of Incept: what the starter of a job knows (1.11).
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
	At         Micros        // when the job is to start; Never or a past time: at once
	Keep       time.Duration // of the flow: how long the closed job is kept; 0: for good
	Publish    bool          // the starter publishes the row itself, at once
	// Order is set for a job that an await or a function starts: the start row, which exists
	// already. Parent is then who ordered it, and is told if it waits for the begin alone.
	Order  *Row
	Parent *journal.Parent
	// From is set for a job that resumes another, with Generation.
	From *journal.From
	// Active says that the inception holds only if the flow's version is the active one.
	Active bool
	// Who asked for the job, where somebody else than the process did (O11).
	Who string
}

// Holder is what has a key: a job or, in state expired, its tombstone. If ID is zero the
// tombstone has ended too, and Generation is the highest that the key may have had (W11).
type Holder struct {
	ID         journal.JobID
	Generation int64
	State      journal.JobState
	Flow       journal.FlowRef
	Input      []byte // of a tombstone nil
	// Floor is the space's floor of generations: the next generation lies above it, too.
	Floor int64
}

// Next is the generation of the next job of the key, above all that the key may have had (W11). A
// nil Holder is that of a key that had none.
func (h *Holder) Next() int64 {
	if h == nil {
		return 1
	}
	return max(h.Generation, h.Floor) + 1
}

// Begin decides on a start (1.11). If a job has the key it returns nil, otherwise the plan of
// the inception, in the generation after the tombstone's.
func Begin(in Inception, held *Holder, mode Mode) *Plan {
	if held != nil && held.State != journal.JobExpired {
		return nil
	}
	in.Generation = held.Next()
	return Incept(in, mode)
}

// Begun is the job that the entry of an inception begins. Head has no hash yet.
func Begun(e *journal.Entry) Job {
	return Job{
		ID: e.Job, Space: e.Space, Key: e.Key, Generation: e.Generation, Flow: *e.Flow, State: journal.JobOpen,
		Started: Micros(e.Time), Tags: e.Tags, Trace: e.Trace, Parent: e.Parent, From: e.From,
	}
}

// Born is the whole state of a job right after its inception, which is applied. Head has no
// hash yet.
func Born(p *Plan, f *flow.Flow) *State {
	e := p.Entry
	s := NewState(Begun(e), Micros(e.Time))
	s.Flow, s.Whole, s.AllRows, s.Born = f, true, true, true
	s.Apply(p)
	return s
}

// FoldStart decides the start message of a job that is about to begin, so that its first steps
// commit with the inception (C11, W9). nil: the message is sent instead, because it needs state
// of other jobs or would not be finished.
func FoldStart(s *State, mode Mode) *Plan {
	start := s.Job.ID.Start()
	if row := s.Rows[start]; mode.Stepwise || !mode.Fold || row != nil && row.NextAt > s.Now && row.Publication == 0 {
		return nil
	}
	return Follow(s, &Message{
		Kind: journal.MessageStart, Job: s.Job.ID, GUID: start, Row: start, Activity: s.Flow.Trigger().Name,
		DAD: RootDAD,
	}, mode)
}

// maxFollowLoads bounds the rounds in which a message asks for state that does not exist.
const maxFollowLoads = 32

// Follow is Step for a message that the transaction itself has caused (L2). nil: it is not decided
// here, because it needs state that has to be loaded, or would not be handled whole.
func Follow(s *State, m *Message, mode Mode) *Plan {
	for range maxFollowLoads {
		p, need := Step(s, m, mode)
		switch {
		case need == nil && p.Done && p.Outcome == Handled && p.Entry != nil:
			return p
		case need == nil || !s.Born || !s.absent(need):
			return nil
		}
	}
	return nil
}

// absent notes that what the need names does not exist, since the job is only beginning. It
// returns false for state that is not the job's own.
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

// know notes that the key was asked for and has nothing, unless it has something.
func know[K comparable, V any](m map[K]V, k K) {
	if _, known := m[k]; !known {
		var none V
		m[k] = none
	}
}

// Incept makes the plan of the starter's own transaction: job row, trigger ledger, receipt,
// entry `created`, dispatch row. The job's id is the GUID of its start message.
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
	dispatched := journal.Dispatched{
		GUID: row.GUID, Kind: journal.MessageStart, Activity: in.Trigger, DAD: string(RootDAD),
	}
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
	if in.Who != "" {
		e.Operator = &journal.Operator{Action: ActionStart, Who: in.Who}
	}
	p := &Plan{
		Job: id, Message: id.Start(), Outcome: Handled, Entry: e,
		Ledgers: []LedgerWrite{{Key: key, New: true, After: TriggerBorn, ResultSeq: 1, Code: CodeOK}},
		Receipt: &ReceiptWrite{
			GUID: id.Start(), New: true, After: StartBorn, Verdict: journal.VerdictHandled, Seq: 1,
		},
		Semaphore:       journal.SemaphoreMove{After: 1},
		NewState:        journal.JobOpen,
		BeginningWrites: BeginningWrites{Active: in.Active, Keep: in.Keep},
	}
	if in.Order == nil {
		p.Insert = []Row{row}
		return p
	}
	// The start row exists already. From now on it is addressed to the trigger, and no parent
	// cancels it any more.
	standing := *in.Order
	standing.Activity, standing.DAD, standing.Origin = row.Activity, row.DAD, row.Origin
	standing.Sender, standing.Undo = journal.JobID{}, false
	standing.Rev++
	p.Update = []Row{standing}
	p.Insert = begun(in.Parent, id, in.Key, in.Now, mode)
	return p
}

// published marks the row as published once in this turn: the committer publishes right after
// its commit. The row is due again when the message should long have been handled (T2).
func (r *Row) published(now Micros, mode *Mode) {
	r.Publication++
	r.PublishedAt = now
	r.TurnSent = r.Turn
	r.NextAt = now + mode.Resend
	r.Session = mode.Session
}
