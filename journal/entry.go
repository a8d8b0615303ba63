package journal

// Version is the format version of the entry bodies that this build writes.
const Version = 3

// MaxEntryBytes bounds the body of one entry, in bytes: a result may have 1 MiB (E6), the rest
// is for Quipu's own fields.
const MaxEntryBytes = 4 << 20

// Kind says what an entry records (2.2). An unknown kind is an error for every reader (V16).
type Kind string

// The kinds of entries.
const (
	KindCreated         Kind = "created"
	KindLeg1            Kind = "leg1"
	KindLeg2            Kind = "leg2"
	KindStale           Kind = "stale"
	KindSignal          Kind = "signal"
	KindInterrupt       Kind = "interrupt"
	KindEffectStarted   Kind = "effect.started"
	KindEffectCompleted Kind = "effect.completed"
	KindEffectFailed    Kind = "effect.failed"
	KindDeadLetter      Kind = "dead_letter"
	KindOperator        Kind = "operator"
	KindQuarantine      Kind = "quarantine"
	KindExpired         Kind = "expired"
	KindResumed         Kind = "resumed" // the next generation resumes the closed job
	KindForked          Kind = "forked"  // a job with a key of its own goes on from an earlier entry
	KindOverdue         Kind = "overdue" // nobody answered a request within its time (E9)
)

// Mark names a durable point that an entry's plan passed (1.6, 1.7). With Stepwise the marks of
// one message are spread over several entries (C11).
type Mark string

// The marks, in the order in which a message passes them.
const (
	MarkEntered    Mark = "entered"     // accepted: counted on its activity
	MarkWork       Mark = "work"        // step 1, or Leg1's work
	MarkChildren   Mark = "children"    // step 2
	MarkClosed     Mark = "closed"      // this message closed the job
	MarkTasks      Mark = "tasks"       // step 3
	MarkAfterClose Mark = "after_close" // markers only, the job was closed before (C15)
)

// MessageKind is the kind of a message and of its dispatch row (1.4).
type MessageKind string

// The kinds of messages.
const (
	MessageStart     MessageKind = "start"
	MessageLeg1      MessageKind = "leg1"
	MessageRequest   MessageKind = "request"
	MessageResponse  MessageKind = "response"
	MessageAnswer    MessageKind = "answer"
	MessageWakeUp    MessageKind = "wakeup"
	MessageOutcome   MessageKind = "outcome"
	MessageCycle     MessageKind = "cycle"
	MessageSignal    MessageKind = "signal"
	MessageInterrupt MessageKind = "interrupt"
	MessageReceipt   MessageKind = "receipt"
)

// JobState is the state of a job (C16).
type JobState string

// The states of a job. Expired is a tombstone: only key, ids and last hash are left.
const (
	JobOpen        JobState = "open"
	JobCompleted   JobState = "completed"
	JobFailed      JobState = "failed"
	JobInterrupted JobState = "interrupted"
	JobQuarantined JobState = "quarantined"
	JobExpired     JobState = "expired"
)

// JobStates are all states of a job, in the order in which lists have them; the last is JobExpired.
var JobStates = []JobState{JobOpen, JobCompleted, JobFailed, JobInterrupted, JobQuarantined, JobExpired}

// Closed reports whether the job has ended; a quarantined job has not.
func (s JobState) Closed() bool {
	return s == JobCompleted || s == JobFailed || s == JobInterrupted || s == JobExpired
}

// ResponseKind tells terminal from pending responses (C12).
type ResponseKind string

// The kinds of responses. All except the terminal one are pending. A pass, which is one signal
// of a repeating hook, is the only pending one that decides transitions.
const (
	ResponseTerminal      ResponseKind = "terminal"
	ResponseFailedAttempt ResponseKind = "failed"
	ResponseSuspended     ResponseKind = "suspended"
	ResponseParked        ResponseKind = "parked"
	ResponsePass          ResponseKind = "pass"
	// ResponseWake records what a durable function waited for (E12).
	ResponseWake ResponseKind = "wake"
)

// PauseKind says what a durable function waits for.
type PauseKind string

// The kinds of pauses.
const (
	PauseSleep  PauseKind = "sleep"
	PauseSignal PauseKind = "signal"
	PauseChild  PauseKind = "child"
)

// By says what woke a hook or a function.
type By string

// What wakes a hook or a function.
const (
	BySignal By = "signal"
	ByTimer  By = "timer"
)

// Verdict is what a receipt says of its message (1.3).
type Verdict string

// The verdicts.
const (
	VerdictHandled Verdict = "handled"
	VerdictStale   Verdict = "stale"
)

// Entry is one row of the journal: what one plan did, in one transaction, with the digits that
// it changed (2.2). Payloads (Input, Output, Data) are canonical JSON of package canonical.
//
// A body contains what does not follow from its place, the entries before it and the derivation
// of ids (W12). Job, Chain and Seq are the record's, and its hash covers them (J9). Space,
// Generation and Trace belong to the whole job, so only its first entry contains them. The
// tables of fields say what else a field follows from; then it is written only if it differs.
type Entry struct {
	Space            string // created entries only
	Job              JobID  // of the record
	Key              string // the job's key, on created entries only
	Generation       int64  // created entries only
	Chain            GUID   // of the record; zero: the main chain
	Seq              int64  // of the record
	Kind             Kind
	GUID             GUID   // the message handled; zero: none
	Activity         string // with DAD; of an effect, only in its first entry
	DAD              string
	Marks            []Mark
	Ledger           Ledger       // the instance's, after the entry; 0: unchanged
	Joins            []LedgerMove // of the joins it arrives at, except folded ones
	Receipt          Ledger       // the message's GUID ledger after the entry; 0: unchanged, or stale
	Semaphore        *int64       // open obligations after the entry; nil: not counted (1.8)
	Open             *int         // elements under `each` that have not ended; nil: none ends
	Response         *Response
	Result           *Result
	Dispatched       []Dispatched
	Updated          []Updated
	Elements         *Elements
	Waits            []Wait
	Ended            GUID       // the row of the message, if this entry ends it; zero: none
	Cancelled        []GUID     // timers, waits and bounds that the end of their activity cancelled
	CancelledByClose []GUID     // rows and waits that a close cancelled
	Undelivered      []Delivery // to repeating hooks, which this entry refuses, holds or cancels
	Abandoned        int        // obligations that a close ended early (C15)
	Close            *Close
	Bound            *Bound // the effect chain that a response binds (J8)
	Flow             *FlowRef
	Parent           *Parent
	Input            []byte   // the job's input, on created entries
	Tags             []string // the job's, sorted, on created entries
	From             *From    // of a job that resumes another, on created entries
	// the job that resumes this one, or goes on from an entry of it, on resumed and forked entries
	Next     JobID
	Effect   *Effect
	Operator *Operator
	Repaired []Difference // what an operator's repair changed in the tables (S11)
	Trouble  *Trouble
	// Writer and Build serve audits only. Without them an entry has those of the entry before
	// it.
	Writer, Build string
	Time          int64  // database time, µs since 1970 (J5)
	Trace         string // W3C traceparent of the job, or ""; created entries only
}

// LedgerMove is an activity ledger as an entry leaves it. Arrivals is how many arrivals at a
// join the entry adds; its other fields do not tell how many transitions lead there.
type LedgerMove struct {
	Activity, DAD string
	After         Ledger
	Arrivals      int
}

// Moves lists all activity ledgers that the entry changes: its own, those of folded Leg1
// messages, and those of joins.
func (e *Entry) Moves() []LedgerMove {
	moves := make([]LedgerMove, 0, 4)
	if e.Ledger != 0 {
		moves = append(moves, LedgerMove{e.Activity, e.DAD, e.Ledger, 0})
	}
	for i := range e.Dispatched {
		if d := &e.Dispatched[i]; d.Folded != 0 {
			moves = append(moves, LedgerMove{d.Activity, d.DAD, d.Folded, d.Arrivals})
		}
	}
	return append(moves, e.Joins...)
}

// Receipts reports whether the entry changes the GUID ledger of its message. A stale message's
// is made with the value 0.
func (e *Entry) Receipts() bool { return e.Receipt != 0 || e.Kind == KindStale }

// SemaphoreMove is the change of the job's open obligations (1.8).
type SemaphoreMove struct{ Before, After int64 }

// Elements says that a Leg1 wrote one request for each of Count elements, sent the first
// Parallel and held the others. Their GUIDs follow from the Leg1's (C8), so they are not in
// Dispatched. Inputs has the sums of their inputs, in order.
type Elements struct {
	Count, Parallel int
	Inputs          Sums
}

// Wait is a wait for a signal that the entry registered. GUID is that of the wake-up; with
// Repeat, the wake-ups' GUIDs derive from it.
type Wait struct {
	GUID       GUID
	Topic, Key string
	Repeat     bool
}

// Delivery is the delivery of a signal to a repeating hook that the entry refuses, holds or
// cancels. The id of its wake-up derives from the hook's wait and the signal, so without it no
// reader could tell what the wake-up was (V10, V11).
type Delivery struct {
	Activity, DAD string // of the hook
	Signal        GUID
	Who           string // who sent it, as in Response
	Number        int    // among the signals of the wait, from 1
	Ends          bool   // it has ended the wait
}

// Parent is the await or the durable function that started a job (1.11).
type Parent struct {
	Space         string
	Job           JobID
	Activity, DAD string
	Leg1          GUID // of the await; the request of a function
	Turn          int
	Awaited       bool // the parent waits for the outcome
	Depth         int  // how many jobs wait for this one, one above the other: 1 to MaxDepth; 0: none
}

// MaxDepth bounds how many jobs wait for one, each for the next. So a flow that awaits itself
// comes to an end, with an error that says why.
const MaxDepth = 100

// MaxFromChildren bounds the children whose outcomes a resumed job takes over.
const MaxFromChildren = 1000

// From is what a job resumes: the last generation of its key, which failed or was interrupted.
// Results and effects that exist there are taken over. Of a fork it is the job of another key
// from one of whose entries it goes on, in whatever state that one is.
type From struct {
	Job        JobID
	Generation int64
	Head       Head // of its main chain, including its resumed or forked entry
	// Root is the first of the generations that resume each other. Effect keys contain it (E1).
	// It is zero for a fork, whose effects have keys of their own.
	Root           JobID
	RootGeneration int64
	// Activity is what is done again: with DAD the one instance that failed, without it every
	// instance and all that follows. "": only what had no result.
	Activity, DAD string
	// Children are those that the job waited for in vain. Each was resumed and has completed
	// since; that outcome is taken over.
	Children []FromChild
	Who      string
	Reason   string
	// Fork is set for a fork, and for a job that resumes one.
	Fork *Fork
}

// Fork is the job whose results up to entry At of its main chain are taken over, those of that
// entry included.
type Fork struct {
	Job        JobID
	Generation int64
	At         int64
}

// Forks reports whether this is of a fork, and not of a job that resumes another.
func (f *From) Forks() bool { return f.Root.IsZero() }

// FromChild is a child with the place that waited for it. Of is the pause of a durable
// function; nil: an await.
type FromChild struct {
	Activity, DAD string
	Element       int
	Of            *PauseRef
	Job           JobID
}

// Taken names the entry of an earlier generation that something is a copy of. Chain is the
// effect's chain, or zero for the main chain. For a child's outcome, Chain and Generation are
// the child's.
type Taken struct {
	Generation int64
	Chain      GUID
	Seq        int64
	Forked     bool // it is one of the job that the fork goes on from, and not of an earlier generation
}

// Result is a result that the engine made for the entry's activity, if that is not the response
// itself: gathered elements, a mapped output, the output of an activity without a response, an
// expression's error.
type Result struct {
	Code   int
	Output []byte // canonical payload; nil: none
	Error  *Failure
	By     By // what woke the hook, as in the response that it replaces
	Taken  *Taken
}

// Response is what a Leg2 message brought.
type Response struct {
	Kind    ResponseKind
	Code    int
	Request GUID // zero: an answer to an activity that wrote no request
	Turn    int
	Attempt int
	Output  []byte // canonical payload; nil: none
	Ref     Digest // digest of an output that is stored beside the entry (E6)
	Error   *Failure
	// RetryAfter is the least delay before the next attempt, as a failed attempt asked for it,
	// in µs (E8).
	RetryAfter int64
	By         By     // of a wake-up
	Signal     GUID   // the signal of a wake-up
	Who        string // who sent that signal, "": a process (O11)
	Number     int    // of the signal among those of its wait, from 1
	Child      JobID
	Element    int       // under `each`
	Pauses     []Pause   // what a suspended function waits for (E12)
	Of         *PauseRef // the pause that a wake-up ends
	// Undone says that a function ended with an error and its compensations have run (3.5).
	Undone bool
	// Began is when the worker began the run that the response ends, in µs since 1970 by its own
	// clock; Ran is how long the run took, in µs of a monotonic clock. No decision uses them.
	// Zero: no run, or a worker that does not say.
	Began, Ran int64
	// Taken is set if an earlier generation of the job recorded the response.
	Taken *Taken
}

// Pause is one thing that a durable function waits for, as its suspension names it (E12). Kind,
// Name and Position tell the pauses of a request apart.
type Pause struct {
	PauseRef
	For     int64  // µs: how long it sleeps, or waits for a signal; 0: without a bound
	Topic   string // of a signal
	Key     string // of a signal; of a child, its job's key, "": a derived one
	Flow    string // of a child
	Version string // of a child; "" the active one
	Input   []byte // of a child, canonical payload
}

// PauseRef names one pause of a request. Position is the place of the call in
// its function (E15).
type PauseRef struct {
	Kind     PauseKind
	Name     string
	Position string
}

// Failure is an error as data.
type Failure struct {
	Class   string // "error", "panic", "timeout", "fatal", "expression", …
	Message string
	Data    []byte // canonical payload; nil: none
	Stack   string
}

// Dispatched is a dispatch row that this entry inserted (T1). A folded Leg1 has no row: this
// entry handles it, too (C11).
type Dispatched struct {
	GUID     GUID
	Kind     MessageKind
	Activity string
	DAD      string
	Topic    string // of requests and signals; of a cycle, the cycle
	Job      JobID  // the row's job; zero: the entry's own job
	At       int64  // due time of a timer, a bound or a retry, µs; 0: at once
	Input    Sum    // of the input of a request or a child's start; zero: none
	Folded   Ledger // of a folded Leg1: its activity's ledger, as the entry leaves it
	Arrivals int    // of a folded join: the arrivals that the entry adds
}

// Updated is a row as this entry left it: in its next turn after a pending response, turned
// into an answer, held, or released.
type Updated struct {
	GUID    GUID
	Kind    MessageKind // answer once turned
	Turn    int
	Attempt int
	NextAt  int64  // µs; 0: never
	Held    string // reason, or ""
}

// Close is the end of a job.
type Close struct {
	State  JobState
	Code   int
	Output []byte // canonical payload, set with MarkTasks
	Error  *Failure
}

// Bound names the head of the effect chain that a response accepts (J8).
type Bound struct {
	Chain GUID
	Head  Head
}

// FlowRef pins the flow version of a job.
type FlowRef struct {
	Name, Version string
	Digest        Digest
}

// Effect is one fact about an effect (3.1), on the request's own chain.
type Effect struct {
	Key    Digest
	Name   string
	Class  string
	N      int // recorded NotDone outcomes before this one (E5)
	Turn   int
	Fence  int64
	Result []byte // canonical payload; completed only
	Error  *Failure
	Late   bool // recorded after the request had ended (J8)
	// Position is the place of the call in a durable function (E15); "" in other
	// handlers.
	Position string
	// Taken is set if an earlier generation of the job recorded the effect.
	Taken *Taken
	// Finding says how the outcome came to be known where the call did not tell it; nil: the call
	// did, or a person, whose action is an entry of its own.
	Finding *Finding
}

// Finding is what a verifier said of an effect whose call brought no outcome (3.3).
type Finding struct {
	Verifier string // which: its type, or the name of its function
	Error    string // that of the call; "" if its run was cut off, so that nobody heard one
	// Asked is when the verifier was asked, in µs since 1970 by the clock of the run; a call with an
	// error had just ended. Took is how many µs it took to answer.
	Asked, Took int64
	Note        string // what it said for people
}

// Operator is what a person did (E10). Who is the name that the person gave, Login the
// session_user of the database login; "" in a store without logins (S8).
type Operator struct{ Action, Who, Reason, Login string }

// Difference is one thing in the tables that is not what the journal says (S11). Without a Column
// it is the whole row: Stored is "" for one that is missing, Journal for one that must not stand.
type Difference struct{ Table, Row, Column, Stored, Journal string }

// Trouble is why a message was dead-lettered or a job quarantined.
type Trouble struct{ Reason, Message string }
