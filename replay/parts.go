package replay

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Obligation is one open obligation of a job (C13): an instance that was
// dispatched and has not ended, or a pass that a cycle asked for.
type Obligation struct {
	Activity string
	DAD      collation.DAD
	Since    int64 // seq of the entry that made it
}

// Recorded says where a result is: the seq of the entry that holds it (0: none yet), its code
// and, with KeepOutputs, its output.
type Recorded struct {
	ResultSeq int64
	Code      int
	Output    []byte
}

// Instance is one instance: its ledger, the result of its first pass, and what
// its Leg1 wrote.
type Instance struct {
	Ledger collation.ActivityLedger
	Recorded
	Leg1   journal.GUID // its Leg1 message, from which other ids follow; zero: not entered yet
	Pivot  bool         // cycles go back to it, so it is never finalized
	Repeat bool         // each signal of this hook is a pass
	// Of Count elements Open have not ended; the first Parallel were sent at once.
	Open, Count, Parallel int
	// For an await, Turn is the number of children started so far, and Attempt the number of
	// failed ones plus 1. Child is the one whose outcome is due; zero: none.
	Turn, Attempt int
	Child         journal.JobID

	arms []journal.GUID // timers, bounds and wait of its Leg1
}

// Receipt is the receipt of one handled message: its ledger, which has the ordinal and the
// steps, its verdict, its row, and what the message brought.
type Receipt struct {
	Ledger  collation.GUIDLedger
	Verdict journal.Verdict
	Seq     int64 // of the entry that accepted it
	Row     journal.GUID
	Message journal.MessageKind // "": no row told it
	// Activity and DAD name its instance.
	Activity string
	DAD      collation.DAD
	Kind     journal.ResponseKind // "": the message brings no response
	Code     int
	By       journal.By // of a wake-up
	Element  int        // under `each`

	output []byte           // until step 1, with KeepOutputs
	err    *journal.Failure // what it brought, until step 2
	pauses []journal.Pause  // what a suspension names, until step 2
	of     journal.GUID     // the pause that a wake-up ends
	gone   bool             // it went with the row of its message (W12)
}

// Gone reports whether the receipt went with the row of its message, so that the table has none
// (W12).
func (r *Receipt) Gone() bool { return r.gone }

func (r *Receipt) key() collation.InstanceKey {
	return collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}
}

// Row is an open dispatch row, as far as entries tell. Publications, leases and first due times
// are not in the journal.
type Row struct {
	Kind     journal.MessageKind
	Activity string
	DAD      collation.DAD
	Topic    string
	Element  int // under `each`
	Turn     int
	Attempt  int
	NextAt   int64 // µs; when a timer or a bound is due, or as set by an entry that updated the row
	Held     string
	Input    journal.Sum // of the input of a request; zero: none
	Origin   int64       // seq of the entry that dispatched it, or that registered the wait of its signal
	// Outside says that no entry of this job dispatched it: a signal's delivery, an outcome, an
	// interrupt. It is known only from the entry that handles it on.
	Outside bool
	// Pauses are what the durable function of the request waits for, as its last suspension
	// named them; keys of Job.Pauses (E12).
	Pauses []journal.GUID

	child journal.JobID // the child whose outcome it is
}

// asleep reports whether the row is that of a suspended function which no entry has sent again.
func (r *Row) asleep() bool {
	return r.Kind == journal.MessageRequest && r.Held == "" && r.NextAt == 0 && len(r.Pauses) > 0
}

// Asleep reports whether the row is that of a suspended function, which is not sent by time.
func (r *Row) Asleep() bool { return r.asleep() }

// key is the instance that the row is addressed to.
func (r *Row) key() collation.InstanceKey {
	return collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}
}

// Wait is an open wait for a signal. A signal counts as consumed when an entry handles its
// wake-up; until then the wait counts as open here.
type Wait struct {
	Activity   string
	DAD        collation.DAD
	Topic, Key string
	Repeat     bool
	Passed     int   // signals consumed so far
	Last       int   // the greatest of their numbers
	Origin     int64 // seq of the entry that registered it
	// Request is the request of the durable function that waits; zero for a hook.
	Request journal.GUID
}

func (w *Wait) key() collation.InstanceKey {
	return collation.InstanceKey{Activity: w.Activity, DAD: w.DAD}
}

// Consumed names a signal that a wait consumed.
type Consumed struct{ Wait, Signal journal.GUID }

// Child is a job that an await or a durable function started and whose outcome was not handled
// yet.
type Child struct {
	Job      journal.JobID
	Activity string // of the await or the function
	DAD      collation.DAD
	Request  journal.GUID // of the function; zero for an await
	Turn     int          // of the await; 0 for a function
	At       int64        // when it is started, µs; 0: at once
	Input    journal.Sum  // of its input; zero: none
	Origin   int64        // seq of the entry that ordered it
}

func (c *Child) key() collation.InstanceKey {
	return collation.InstanceKey{Activity: c.Activity, DAD: c.DAD}
}

// EffectState is how far an effect came.
type EffectState string

// The states of an effect (E5).
const (
	EffectStarted   EffectState = "started"
	EffectCompleted EffectState = "completed"
	EffectNotDone   EffectState = "not_done"
)

// Effect is one effect key with its outcome; the result is kept as a digest.
type Effect struct {
	Request journal.GUID
	Name    string
	Class   string
	N       int
	State   EffectState
	Result  journal.Digest // of the result, or of its error; zero until then
	// Position is the place of the call in a durable function (E15).
	Position string
	Fence    int64 // of the run that began it
	// Voided says that an operator voided a recorded result (3.3); State is then EffectNotDone.
	Voided bool
}
