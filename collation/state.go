package collation

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Micros is a point of the database's clock, µs since 1970 UTC (J5).
type Micros int64

// Never is the due time of a row that waits for something else than time.
const Never Micros = 0

// InstanceKey names an instance within its job, at its base address (1.2), or
// an output within its job, at its resolved address (1.9).
type InstanceKey struct {
	Activity string
	DAD      DAD
}

// Job is the header of a job: all that a decision needs to know of it (J2).
type Job struct {
	ID         journal.JobID
	Space      string
	Key        string
	Generation int64
	Flow       journal.FlowRef
	State      journal.JobState
	Semaphore  int64
	Head       journal.Head // of the main chain
	Started    Micros
	Tags       []string        // sorted
	Trace      string          // traceparent under which the job was started, or ""
	Parent     *journal.Parent // of a job that an await started
	From       *journal.From   // of a job that resumes another
}

// Root is the first of the jobs that resume each other, with its generation: the keys of
// effects are made of its name (E1). A job that resumes none is its own.
func (j *Job) Root() (journal.JobID, int64) {
	if j.From == nil {
		return j.ID, j.Generation
	}
	return j.From.Root, j.From.RootGeneration
}

// Instance is the row of an instance. ResultSeq is the main chain's entry that
// holds its result (J7), 0 as long as there is none.
type Instance struct {
	Ledger    ActivityLedger
	ResultSeq int64
	Code      int
	More
}

// More is what an instance keeps beside its digits. It is zero for an instance
// that needs none of it.
type More struct {
	Leg1    journal.GUID  // its Leg1 message, from which further GUIDs follow
	Open    int           // elements that have not ended (1.11)
	Count   int           // elements in all
	Size    int           // bytes of the outputs of ended elements, at least
	Turn    int           // of an await: children started so far
	Attempt int           // of an await: failed attempts so far, plus 1
	Child   journal.JobID // of an await: the child whose outcome is due
}

// Wait is an open wait for a signal: the arbiter between signal and timer
// (1.11). It is deleted by whichever comes first.
type Wait struct {
	GUID     journal.GUID // WakeUpGUID of the hook's Leg1
	Job      journal.JobID
	Activity string
	DAD      DAD
	Topic    string
	Key      string
	Repeat   bool
	MaxAge   Micros // of a kept signal; 0: any
	Count    int    // signals delivered (Repeat)
	Since    Micros // when it was registered
	Origin   int64  // seq of the entry that registered it
	// Request is that of the durable function that waits; zero for a hook.
	Request journal.GUID
}

// Receipt is the row of a message that has steps (1.3). Seq is the entry that
// accepted it; Response is what that entry recorded and is loaded only while
// steps are open.
type Receipt struct {
	Ledger   GUIDLedger
	Verdict  journal.Verdict
	Seq      int64
	Response *journal.Response
}

// Row is a dispatch row: outbox, timer, lease, lock of the effect chain, and
// the dispatch row of its message (T1).
type Row struct {
	GUID     journal.GUID
	Job      journal.JobID
	Kind     journal.MessageKind
	Activity string
	DAD      DAD    // base address of the instance it is addressed to
	Topic    string // requests only
	Element  int    // index under `each`
	// Body is the input of a request, or the Response (wire form) of an answer.
	Body        []byte
	NextAt      Micros // Never: not sent by time
	Held        string // reason, or "": not sent while it is held
	Dead        bool   // an open dead letter stands for this row (E10)
	Publication int
	PublishedAt Micros
	Turn        int
	TurnSent    int
	Attempt     int
	Runs        int
	Holder      string // the run that has it; "": none
	Session     int64  // of that run's process or, without one, of that which publishes the row; 0: of none (W8)
	Fence       int64
	WithinAt    Micros // Never: unbounded
	Effects     journal.Head
	Origin      int64 // seq of the entry that inserted it
	// Sender is the job that awaits the child, on a start that was not handled
	// yet: only then its close takes the row back (C15). With Undo it is the job
	// whose function is undone, and nobody takes the row back.
	Sender journal.JobID
	// Pauses are what a suspended function waits for, as its last suspension named
	// it, and what of it has come since (E12); requests only.
	Pauses []Pause
	// Undo says that the function has registered compensations: one that is ended
	// by somebody else is followed by a job that runs them (3.5). On a start it
	// says that it is that of such a job.
	Undo bool
	// Input is what the body of a request with Undo was before it was turned.
	Input []byte
	// Rev counts the writes of the row, whoever made them: a decision on a row that
	// was read in an earlier transaction holds only while Rev is what it was (W6).
	Rev int64
}

// Pause is a pause of a request on its row.
type Pause struct {
	journal.PauseRef
	GUID    journal.GUID // of the wake-up; of a child, its start
	Timeout bool         // a signal whose wait has a bound
	Taken   bool         // a wake was accepted for it
	Came    bool         // the wake's step 2 is done: the next run finds it
}

// Held reasons.
const (
	HeldStuck    = "stuck"
	HeldParked   = "parked"
	HeldParallel = "parallel" // an element that waits for its turn
	HeldKept     = "kept"     // a signal that waits for its wait
)

// Answers reports which message an answer row stands for (1.4).
func (r *Row) Answers() journal.GUID {
	if r.Turn == 0 {
		return r.GUID
	}
	return ResponseGUID(r.GUID, r.Turn)
}

// State is what a message meets: loaded under the lock of its job (J3) and
// moved on by Apply, so that several messages of a job fold in one
// transaction. A map that has no member for a key was not asked for it; a nil
// member says that there is no such row.
type State struct {
	Job       Job
	Flow      *flow.Flow
	Now       Micros
	Author    Author // of the last entry, where a plan that was applied says it: the next need not repeat it
	Instances map[InstanceKey]*Instance
	Receipts  map[journal.GUID]*Receipt
	Rows      map[journal.GUID]*Row
	Results   map[InstanceKey]*flow.Result
	// Unfinished says of requests that were asked for whether one of their effects
	// has a start and no end.
	Unfinished map[journal.GUID]bool
	// Record holds all effects of requests that were asked for, in the order of their
	// first entry.
	Record map[journal.GUID][]EffectRow
	// Waits are open waits of the job, by their GUID.
	Waits map[journal.GUID]*Wait
	// Latest are the latest results of activities, whatever their address: what
	// the flow's output sees of activities that make passes.
	Latest map[string]*flow.Result
	// Keys are the jobs that have the keys, zero where there is none.
	Keys map[string]journal.JobID
	// Past is what the generations that the job resumes have of an instance, or of an
	// element, the latest first.
	Past map[InstanceKey][]Past
	// PastPauses is what they recorded of the pauses of functions, nil for nothing.
	PastPauses map[PauseKey]*PastPause
	// Ends are how children that were waited for before ended, resumed since.
	Ends map[journal.JobID]*End
	// Close is how the job was closed, loaded where step 3 is a transaction of its
	// own and has to tell.
	Close *journal.Close
	// Whole says that Instances and Results hold every one of the job, that it has
	// no wait, and no receipt with open steps.
	Whole bool
	// AllRows says that Rows holds every row of the job and the starts that it
	// sent and awaits, Waits every wait, and Instances every one with a Child: a
	// close needs them.
	AllRows bool
}

// Message is a decoded message on its way into Step.
type Message struct {
	Kind     journal.MessageKind
	Job      journal.JobID
	GUID     journal.GUID // its own
	Row      journal.GUID // of its dispatch row
	Activity string
	DAD      DAD // base address of its instance
	Turn     int
	// Response is what a worker's response carries; an answer's stands in its
	// row and a redelivery's is not read (1.7).
	Response *journal.Response
	// Entered says that this delivery's entry is committed already: Leg1 goes on
	// with its work (1.6).
	Entered bool
	// Alone asks for the entry by itself before the work (1.6): a message that
	// was delivered or published at least AloneFrom times.
	Alone bool
}

// AloneFrom is the delivery or publication from which a message is handled
// outside batches, its entry counted before its work (1.6).
const AloneFrom = 3

// Need names state that a decision misses. It is loaded in the same
// transaction and the message stepped again (J2).
type Need struct {
	Instances []InstanceKey
	Results   []InstanceKey
	Effects   []journal.GUID // requests, for State.Unfinished
	Record    []journal.GUID // requests, for State.Record
	Rows      []RowKey
	Waits     []journal.GUID
	Latest    []string // activities
	Keys      []string
	Past      []InstanceKey
	Pauses    []PauseKey
	Ends      []journal.JobID
	Close     bool
	AllRows   bool
	Further   int // waits of a mailbox
}

// RowKey names a dispatch row.
type RowKey struct {
	Job  journal.JobID
	GUID journal.GUID
}

// Empty reports whether nothing is missing.
func (n *Need) Empty() bool {
	return len(n.Instances) == 0 && len(n.Results) == 0 && len(n.Effects) == 0 && len(n.Record) == 0 && len(n.Rows) == 0 &&
		len(n.Waits) == 0 && len(n.Latest) == 0 && len(n.Keys) == 0 && len(n.Past) == 0 && len(n.Pauses) == 0 && len(n.Ends) == 0 && !n.Close && !n.AllRows && n.Further == 0
}

// Author is the process that writes an entry, and its build: for an audit only.
type Author struct{ Writer, Build string }

// Mode says how plans are cut and joined; digits, ids, outputs and marks are
// the same in every mode (C11).
type Mode struct {
	Stepwise bool // commit at every mark
	Fold     bool // take children's Leg1 into the plan that dispatches them
	// Resend is after how long a published row is looked at again, µs (T2). It is
	// short for requests too: the look finds a message that still waits or is
	// being handled, so that only a lost one is sent again.
	Resend Micros
	// Session is that of the process, which publishes what the plans send; 0: none (W8).
	Session int64
	// InFlight is how long the call of a guarded effect without a timeout may be under
	// way after its start, µs: nobody takes it over before (E4, W8).
	InFlight Micros
	// Outside is how long a run may be at work, µs, whose request somebody else has
	// answered: its compensations begin after it (3.5).
	Outside       Micros
	Writer, Build string // audit only
}

// MaxFold bounds the activities that one transaction may fold (C11).
const MaxFold = 16
