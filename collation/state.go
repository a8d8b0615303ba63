package collation

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Micros is a time of the database's clock, in µs since 1970 UTC (J5), or a duration in µs.
type Micros int64

// Never is the due time of a row that does not wait for a time.
const Never Micros = 0

// InstanceKey names an instance within its job, at its base address (1.2), or
// an output within its job, at its resolved address (1.9).
type InstanceKey struct {
	Activity string
	DAD      DAD
}

// RefOf names the version of a flow.
func RefOf(f *flow.Flow) journal.FlowRef {
	return journal.FlowRef{Name: f.Name(), Version: f.Version(), Digest: journal.Digest(f.Digest())}
}

// Job is the header of a job: what a decision needs to know of it (J2).
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
	Parent     *journal.Parent // of a job that an await or a function started
	From       *journal.From   // of a job that resumes another, or of a fork
}

// depth is how many jobs wait for this one, one above the other.
func (j *Job) depth() int {
	if j.Parent == nil {
		return 0
	}
	return j.Parent.Depth
}

// Root is the first of the jobs that resume each other, with its generation; effect keys
// contain it (E1). A job that resumes none is its own root.
func (j *Job) Root() (journal.JobID, int64) {
	if j.From == nil || j.From.Forks() {
		return j.ID, j.Generation
	}
	return j.From.Root, j.From.RootGeneration
}

// Instance is the row of an instance. ResultSeq is the entry of the main chain that holds its
// result (J7); 0: there is none yet.
type Instance struct {
	Ledger    ActivityLedger
	ResultSeq int64
	Code      int
	More
}

// More is what some instances keep beside their ledger; it is zero for the others.
type More struct {
	Leg1    journal.GUID  // its Leg1 message, from which further GUIDs follow
	Open    int           // elements that have not ended (1.11)
	Count   int           // elements in all
	Size    int           // bytes of the outputs of ended elements, a lower bound
	Turn    int           // of an await: children started so far
	Attempt int           // of an await: failed attempts so far, plus 1
	Child   journal.JobID // of an await: the child whose outcome is due
}

// Wait is an open wait for a signal; it decides between the signal and a timer (1.11). The
// first to come deletes it.
type Wait struct {
	GUID     journal.GUID // WakeUpGUID of the hook's Leg1, or PauseGUID
	Job      journal.JobID
	Activity string
	DAD      DAD
	Topic    string
	Key      string
	Repeat   bool
	MaxAge   Micros // how old a kept signal may be; 0: any age
	Count    int    // signals delivered (Repeat)
	Since    Micros // when it was registered
	Origin   int64  // seq of the entry that registered it
	// Request is the request of the durable function that waits; zero for a hook.
	Request journal.GUID
}

// Receipt is the ledger row of a message with steps (1.3). Seq is the entry that accepted the
// message. Response is what that entry recorded; it is loaded only while steps are open.
type Receipt struct {
	Ledger   GUIDLedger
	Verdict  journal.Verdict
	Seq      int64
	Response *journal.Response
}

// NoTurn is the TurnSent of a row that may not have been published: it is sent when it is due, and
// nobody looks whether a queue still has its message (W8). It is no turn, as 0 is of whatever is no
// request.
const NoTurn = -1

// Row is the dispatch row of a message: outbox, timer, lease, and lock of the effect chain (T1).
type Row struct {
	GUID     journal.GUID
	Job      journal.JobID
	Kind     journal.MessageKind
	Activity string
	DAD      DAD    // base address of the instance it is addressed to
	Topic    string // of requests and signals; of a cycle, the cycle
	// Body is the input of a request, or the Response (wire form) of an answer.
	Body        []byte
	NextAt      Micros // Never: not sent by time
	Held        string // the reason; a held row is not sent. "": not held
	Dead        bool   // an open dead letter stands for this row (E10)
	Publication int
	PublishedAt Micros
	Session     int64 // of the holder's process, else of the process that publishes the row; 0: none (W8)
	Origin      int64 // seq of the entry that inserted it
	// Sender is set on a start that was not handled yet: the job that awaits the child, whose
	// close cancels the row (C15). With Undo it is the job whose function is undone, and nobody
	// cancels the row.
	Sender journal.JobID
	// Undo says that the function has registered compensations. If somebody else ends it, a job
	// is ordered that runs them (3.5). On a start it marks such a job.
	Undo bool
	// Rev counts all writes of the row. A decision on a row from an earlier transaction holds
	// only if Rev has not changed (W6).
	Rev int64
	Request
}

// Request is what the row of a request has besides, and that of an answer, which it becomes. Of a
// row of another kind it is zero, but that TurnSent may be NoTurn.
//
// No counter follows from the others. A pending response ends a Turn, and only a failed one ends an
// Attempt, too. Runs counts the runs since then, or since the effect chain moved on (E9). Fence counts
// all runs, and never goes back.
type Request struct {
	Element  int // index under `each`
	Turn     int
	TurnSent int // the turn in which it was last published, or NoTurn
	Attempt  int
	Runs     int
	Holder   string // the run that has the lease; "": none
	Fence    int64
	WithinAt Micros       // Never: unbounded
	Effects  journal.Head // of its effect chain
	// Pauses are what a suspended function waits for, as its last suspension named them, and
	// what has come since (E12).
	Pauses []Pause
	// Input keeps the body of a request with Undo after an answer has replaced it.
	Input []byte
}

// Lost is how many runs of a request's attempt ended without an answer, with their process or its
// connection (E9).
func (r *Row) Lost() int {
	if r.Holder != "" {
		return r.Runs - 1
	}
	return r.Runs
}

// Pause is one pause of a durable function, on the row of its request.
type Pause struct {
	journal.PauseRef
	GUID    journal.GUID // of the wake-up, of the wait for a signal, or of a child's start
	Timeout bool         // the wait for a signal has a bound
	Taken   bool         // a wake was accepted for it
	Came    bool         // the wake's step 2 is done: the next run finds it
}

// Reasons for which a row is held.
const (
	HeldStuck    = "stuck"
	HeldParked   = "parked"
	HeldParallel = "parallel" // an element that waits for its turn
	HeldKept     = "kept"     // a signal that nobody waits for yet
)

// Answers is the GUID of the message that an answer row stands for (1.4).
func (r *Row) Answers() journal.GUID {
	if r.Turn == 0 {
		return r.GUID
	}
	return ResponseGUID(r.GUID, r.Turn)
}

// State is what a message meets. It is loaded under the lock of its job (J3), and Apply updates
// it, so that several messages of a job can commit in one transaction. A key that is missing in
// a map was not asked for; a nil member says that there is no such row.
type State struct {
	Job       Job
	Flow      *flow.Flow
	Now       Micros
	Author    Author // of the last entry, if an applied plan named it: the next entry need not repeat it
	Instances map[InstanceKey]*Instance
	Receipts  map[journal.GUID]*Receipt
	Rows      map[journal.GUID]*Row
	Results   map[InstanceKey]*flow.Result
	// Unfinished says of the requests that were asked for whether one of their effects was
	// started and has not ended.
	Unfinished map[journal.GUID]bool
	// Record holds all effects of the requests that were asked for, in the order of their first
	// entries.
	Record map[journal.GUID][]EffectRow
	// Waits are the open waits of the job, by GUID.
	Waits map[journal.GUID]*Wait
	// Latest are the latest results of activities at any address: what the flow's output sees of
	// activities that make passes.
	Latest map[string]*flow.Result
	// Keys are the jobs that have the keys; zero: there is none.
	Keys map[string]journal.JobID
	// Past is what earlier generations of a resuming job have of an instance or an element, the
	// latest first.
	Past map[InstanceKey][]Past
	// PastPauses is what they recorded of the pauses of functions; nil: nothing.
	PastPauses map[PauseKey]*PastPause
	// Ends are the outcomes of children that an earlier generation waited for in vain.
	Ends map[journal.JobID]*End
	// Close is how the job was closed. It is loaded when step 3 commits apart and needs it.
	Close *journal.Close
	// Whole says that Instances and Results are complete, and that the job has no receipt with
	// open steps.
	Whole bool
	// Born says that the job begins in the transaction that decides, and that all of it is here: what
	// is not in the state does not exist.
	Born bool
	// AllRows says that Rows has every row of the job and every start that it sent and awaits,
	// Waits every wait, and Instances every one with a Child. A close needs them.
	AllRows bool
}

// NewState is the state of a job of which nothing has been read yet.
func NewState(job Job, now Micros) *State {
	return &State{
		Job: job, Now: now, Instances: map[InstanceKey]*Instance{}, Receipts: map[journal.GUID]*Receipt{},
		Rows:    map[journal.GUID]*Row{},
		Results: map[InstanceKey]*flow.Result{}, Unfinished: map[journal.GUID]bool{},
		Record: map[journal.GUID][]EffectRow{},
		Waits:  map[journal.GUID]*Wait{}, Latest: map[string]*flow.Result{}, Keys: map[string]journal.JobID{},
	}
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
	// Response is the content of a worker's response. That of an answer is in its row; that of a
	// redelivery is not read (1.7).
	Response *journal.Response
	// Entered says that the entry of this delivery is committed already, and Leg1 goes on with
	// its work (1.6).
	Entered bool
	// Alone asks to commit the entry before the work (1.6), for a message that was delivered or
	// published at least AloneFrom times.
	Alone bool
}

// AloneFrom is the delivery or publication from which a message is handled outside batches,
// with its entry counted before its work (1.6).
const AloneFrom = 3

// Need names the state that a decision misses. It is loaded in the same transaction, and the
// message is stepped again (J2).
type Need struct {
	Instances []InstanceKey
	Results   []InstanceKey
	Receipts  []journal.GUID
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
	Further   int // how many further waits of a mailbox
}

// RowKey names a dispatch row.
type RowKey struct {
	Job  journal.JobID
	GUID journal.GUID
}

// Empty reports whether nothing is missing.
func (n *Need) Empty() bool {
	return len(n.Instances) == 0 && len(n.Results) == 0 && len(n.Receipts) == 0 && len(n.Effects) == 0 &&
		len(n.Record) == 0 && len(n.Rows) == 0 &&
		len(n.Waits) == 0 && len(n.Latest) == 0 && len(n.Keys) == 0 && len(n.Past) == 0 && len(n.Pauses) == 0 &&
		len(n.Ends) == 0 && !n.Close && !n.AllRows && n.Further == 0
}

// Author is the process that writes an entry, and its build. It serves audits only.
type Author struct{ Writer, Build string }

// Mode says how plans are cut and joined. Digits, ids, outputs and marks are the same in every
// mode (C11).
type Mode struct {
	Stepwise bool // commit at every mark
	Fold     bool // make the Leg1 of children part of the plan that dispatches them
	// Resend is how long after its publication a row is looked at again, in µs (T2). It may be
	// short: the look sees whether the message still waits or is being handled, so only a lost
	// one is sent again.
	Resend Micros
	// Session is the session of the process that publishes what the plans send; 0: none (W8).
	Session int64
	// InFlight is how long the call of a guarded effect without a timeout may last, in µs.
	// Nobody takes the effect over before that (E4, W8).
	InFlight Micros
	// Outside is how long a run may still be busy after somebody else has answered its request,
	// in µs. Compensations begin after that (3.5).
	Outside Micros
	// Private says that the space keeps digests of the keys of jobs and signals (S15).
	Private bool
	// Stop is asked now and then whether a decision takes too long on this machine. Then it ends
	// without a verdict, as Stopped. nil: it has all the time.
	Stop          func() bool
	Writer, Build string // audit only
	Login         string // of the process at the database; for the entries of operators (S8)
}

// MaxFold bounds the activities that one transaction may fold (C11).
const MaxFold = 16
