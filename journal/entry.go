package journal

// Version is the format version of the entry bodies that this build writes.
const Version = 2

// MaxEntryBytes bounds the body of one entry: a result may have 1 MiB (E6),
// the rest is ours.
const MaxEntryBytes = 4 << 20

// Kind says what an entry records (spec 2.2). An unknown kind is an error for
// every reader (V16).
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
	KindResumed         Kind = "resumed" // the next generation goes on with what the closed job has done
)

// Mark names a durable point that an entry's plan passed (1.6, 1.7). Under
// stepwise commits one message spreads its marks over several entries (C11).
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

// The states of a job. Expired is a tombstone: key, generation and head only.
const (
	JobOpen        JobState = "open"
	JobCompleted   JobState = "completed"
	JobFailed      JobState = "failed"
	JobInterrupted JobState = "interrupted"
	JobQuarantined JobState = "quarantined"
	JobExpired     JobState = "expired"
)

// Closed reports whether the job has ended; a quarantined job has not.
func (s JobState) Closed() bool {
	return s == JobCompleted || s == JobFailed || s == JobInterrupted || s == JobExpired
}

// ResponseKind tells terminal from pending responses (C12).
type ResponseKind string

// The kinds of responses. All but the terminal one are pending; a pass, one
// signal of a repeating hook, is the only pending one that decides transitions.
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

// By says what woke a hook.
type By string

// What wakes a hook.
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

// Entry is one row of the journal: what one plan did, in one transaction, with
// the digits it moved (2.2). Payloads (Input, Output, Data) are canonical JSON of
// package canonical.
//
// A body says what does not follow from its place, the entries before it and the
// ids' derivation (W12). Job, Chain and Seq are the record's, and bound by its hash
// (J9). Space, Generation and Trace are those of the whole job: its first entry
// alone says them. What a field follows from within its entry stands beside it in
// the tables of fields: it is written where it is something else.
type Entry struct {
	Space            string // said by created entries alone
	Job              JobID  // of the record
	Key              string // the job's key, on created entries only
	Generation       int64  // said by created entries alone
	Chain            GUID   // of the record; zero: the main chain
	Seq              int64  // of the record
	Kind             Kind
	GUID             GUID   // the message handled; zero for none
	Activity         string // with DAD; of an effect said by its first entry
	DAD              string
	Marks            []Mark
	Ledger           Ledger       // of the message's own instance, as the entry leaves it; 0: it does not move
	Joins            []LedgerMove // of the joins that it arrives at, but for folded ones
	Receipt          Ledger       // the message's GUID ledger, as the entry leaves it; 0: it does not move, or is stale
	Semaphore        *int64       // open obligations of the job, as the entry leaves them; nil: it does not count them (1.8)
	Open             *int         // elements under `each` that have not ended; nil: none ends
	Response         *Response
	Result           *Result
	Dispatched       []Dispatched
	Updated          []Updated
	Elements         *Elements
	Waits            []Wait
	Ended            GUID   // the dispatch row whose message ended by being handled; zero: none
	Cancelled        []GUID // timers, waits and bounds that the end of their activity took back
	CancelledByClose []GUID // dispatch rows and waits that a close took back
	Abandoned        int    // obligations a close by failure took over (C15)
	Close            *Close
	Bound            *Bound // the effect chain that a response binds (J8)
	Flow             *FlowRef
	Parent           *Parent
	Input            []byte   // the job's input, on created entries
	Tags             []string // the job's, sorted, on created entries
	From             *From    // of a job that resumes another, on created entries
	Next             JobID    // the job that resumes this one, on resumed entries
	Effect           *Effect
	Operator         *Operator
	Trouble          *Trouble
	// Writer and Build are for an audit only. An entry without them has those of the
	// entry before it.
	Writer, Build string
	Time          int64  // database time, µs since 1970 (J5)
	Trace         string // W3C traceparent of the job, or ""; said by created entries alone
}

// LedgerMove is an activity ledger as an entry leaves it. Arrivals is how many
// arrivals at a join the entry adds: how many transitions lead there, its other
// facts do not tell.
type LedgerMove struct {
	Activity, DAD string
	After         Ledger
	Arrivals      int
}

// Moves are all activity ledgers that the entry moves: its own, those of the Leg1
// that are folded into it, those of joins.
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

// Receipts reports whether the entry moves the GUID ledger of its message: that of
// a stale one is made with the value 0.
func (e *Entry) Receipts() bool { return e.Receipt != 0 || e.Kind == KindStale }

// SemaphoreMove is the change of the job's open obligations (1.8).
type SemaphoreMove struct{ Before, After int64 }

// Elements says that a Leg1 wrote one request for each of Count elements, the
// first Parallel of them sent and the others held. Their GUIDs follow from the
// Leg1's (C8), so they are not listed as dispatched. Inputs has the sum of each
// one's input, in order.
type Elements struct {
	Count, Parallel int
	Inputs          Sums
}

// Wait is a wait for a signal that a Leg1 registered. GUID is that of the
// wake-up, under Repeat the base of theirs.
type Wait struct {
	GUID       GUID
	Topic, Key string
	Repeat     bool
}

// Parent is the await that a job was started by (1.11).
type Parent struct {
	Space         string
	Job           JobID
	Activity, DAD string
	Leg1          GUID // of the await
	Turn          int
	Awaited       bool // it waits for the outcome
}

// MaxFromChildren bounds the children that a resumed job takes the outcomes of.
const MaxFromChildren = 1000

// From is what a job resumes: the last generation of its key, which has failed or was
// interrupted. What has a result there is taken over, and so are the effects.
type From struct {
	Job        JobID
	Generation int64
	Head       Head // of its main chain, with the entry that says that it is resumed
	// Root is the first of the generations that resume each other. The keys of effects
	// are those that it would give them (E1).
	Root           JobID
	RootGeneration int64
	// Activity is what is done again: with DAD the one instance that failed, without it
	// every instance, and all that follows from it. "": only what had no result.
	Activity, DAD string
	// Children are those that the job waited for in vain. Each has been resumed since,
	// and has completed: that is the outcome that is taken.
	Children []FromChild
	Who      string
	Reason   string
}

// FromChild is a child with the place that waited for it. Of is the pause of a durable
// function, nil of an await.
type FromChild struct {
	Activity, DAD string
	Element       int
	Of            *PauseRef
	Job           JobID
}

// Taken names the entry of an earlier generation that something is a copy of. Chain is
// that of an effect, zero for the main chain; of a child's outcome it is the child, and
// Generation the child's.
type Taken struct {
	Generation int64
	Chain      GUID
	Seq        int64
}

// Result is the result that the engine made for the entry's activity, where it
// is not the response itself: gathered elements, a mapped output, the output of
// an activity without a response, an error of an expression.
type Result struct {
	Code   int
	Output []byte // canonical payload; nil for none
	Error  *Failure
	By     By // what woke the hook, as in the response that it stands for
	Taken  *Taken
}

// Response is what a Leg2 message brought.
type Response struct {
	Kind    ResponseKind
	Code    int
	Request GUID // zero: an answer to an activity that wrote no request
	Turn    int
	Attempt int
	Output  []byte // canonical payload; nil for none
	Ref     Digest // or the digest of an output that is stored beside (E6)
	Error   *Failure
	// RetryAfter is the least delay before the next attempt that a failed attempt asked
	// for, µs (E8).
	RetryAfter int64
	By         By   // of a wake-up
	Signal     GUID // the signal of a wake-up
	Number     int  // of the signal among those of its wait, from 1
	Child      JobID
	Element    int       // under `each`
	Pauses     []Pause   // all that a suspended function waits for (E12)
	Of         *PauseRef // the pause that a wake ends
	// Undone says of a function's error that its compensations have run (3.5).
	Undone bool
	// Began is when the worker began the run that the response ends, µs since 1970 by
	// its own clock, and Ran how long it took, µs by a clock that is never set. Nothing
	// is decided by them. Zero: no run, or a worker that does not say it.
	Began, Ran int64
	// Taken is of a response that an earlier generation of the job recorded.
	Taken *Taken
}

// Pause is one thing that a durable function waits for, as its suspension names
// it (E12). Kind and Name tell the pauses of a request apart.
type Pause struct {
	PauseRef
	For     int64  // µs: how long it sleeps; of a signal, how long it waits, 0: without a bound
	Topic   string // of a signal
	Key     string // of a signal; of a child, its job's key, "" for a derived one
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
	Data    []byte // canonical payload; nil for none
	Stack   string
}

// Dispatched is a dispatch row that this entry inserted (T1). A Leg1
// that is folded into the entry has none: the entry handles it, too (C11).
type Dispatched struct {
	GUID     GUID
	Kind     MessageKind
	Activity string
	DAD      string
	Topic    string // requests and signals only
	Job      JobID  // whose row it is, zero for the entry's own job
	At       int64  // due time of a timer, a bound or a retry, µs; 0: at once
	Input    Sum    // of the canonical input that a request, or a child's start, sends; zero: it sends none
	Folded   Ledger // of a Leg1 that is folded: its activity's ledger, as the entry leaves it
	Arrivals int    // of a folded join: those that the entry adds
}

// Updated is a request's row as this entry left it: its next turn after a
// pending response, turned into an answer, held, or released.
type Updated struct {
	GUID    GUID
	Kind    MessageKind // request, or answer once turned
	Turn    int
	Attempt int
	NextAt  int64  // µs; 0 never
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
	// Taken is of an effect that an earlier generation of the job recorded.
	Taken *Taken
}

// Operator is what a person did (E10).
type Operator struct{ Action, Who, Reason string }

// Trouble is why a message was dead-lettered or a job quarantined.
type Trouble struct{ Reason, Message string }
