package collation

import (
	"time"

	"github.com/quipu-journal/quipu/journal"
)

// Outcome says what became of a message (C5, C10).
type Outcome string

// The outcomes.
const (
	// Handled: the plan changes something; commit, publish, ack (if Done).
	Handled Outcome = "handled"
	// Stale: refused for good by the state of its job or activity; the verdict
	// is committed with the end of its row.
	Stale Outcome = "stale"
	// Settled: its receipt is there and complete; nothing is written, ack.
	Settled Outcome = "settled"
	// Unlicensed: no receipt and no row; handled, answered, cancelled or never
	// committed; nothing is written, ack and count.
	Unlicensed Outcome = "unlicensed"
	// HeldBack: its row is held for a person; nothing is written, ack (E10).
	HeldBack Outcome = "held"
	// Later: another message of its instance goes first; nothing is written, the
	// message comes again shortly.
	Later Outcome = "later"
	// Stuck: a counter is at its ceiling; its row is held, with a dead letter.
	Stuck Outcome = "stuck"
	// Quarantined: the stored state is against the laws (J1), or its job is
	// quarantined already.
	Quarantined Outcome = "quarantined"
)

// Plan is everything that one message changes, as one value. The order is
// fixed: it is committed whole, then its Insert rows that are due are
// published, then its message is acked (spec 4, T2 and T3). A plan without an
// Entry moves no ledger and not the main chain.
type Plan struct {
	Job     journal.JobID
	Message journal.GUID
	Outcome Outcome
	// Done says that the message has no step left after this plan; under
	// Stepwise the same message is stepped again until it is.
	Done bool

	Entry     *journal.Entry // seq set; chained by the engine
	Ledgers   []LedgerWrite
	Receipt   *ReceiptWrite // nil: none moves, or the message is done with this plan alone (W12)
	Semaphore journal.SemaphoreMove
	Close     *journal.Close   // this plan closes the job
	Tasks     bool             // this plan ran the completion tasks
	NewState  journal.JobState // "" unchanged
	// Active says of an inception that its flow's version has to be the one for new
	// jobs when it commits.
	Active bool
	Insert []Row          // Row.Job may be another job
	Update []Row          // whole new values of own rows that stay
	Delete []journal.GUID // own rows
	// CancelStarts takes back starts of children that were not handled yet: rows of
	// other jobs whose Sender is this one, by test-and-set (C15).
	CancelStarts []RowKey
	// Discard ends rows of any jobs that can come to nothing, if they are there.
	Discard     []RowKey
	Waits       []Wait          // registered: under the lock of its key, and held signals of the key become due (J3)
	CancelWaits []CancelledWait // own waits taken back, by test-and-set
	// Taken and Signals are of a mailbox's plan, which names no job: waits of any
	// jobs, and what became of its signals.
	Taken        []Taken
	Signals      []SignalWrite
	Resolve      []journal.GUID // rows whose open dead letter ends with this plan
	Dead         []DeadLetter
	Letters      []LetterEnd   // ended by an operator, by test-and-set
	ResolvedWait *ResolvedWait // what a function waited for, recorded by this plan (E12)
	// Chain is what the plan writes on the effect chain of a request (J8). It may
	// stand without an Entry.
	Chain *ChainWrite
	// Session is that of the run that the plan takes a request for, or begins an effect
	// of: it lasts until the commit. 0: none (W8).
	Session int64
	// Payload is an output that is stored beside the entries of its job, if that is
	// there.
	Payload *Payload
	// Keep is of an inception: how long the job is to be kept once it has closed; 0: for
	// good.
	Keep time.Duration
	// Next is the job that resumes this one, which has closed. The key is its from then
	// on; the commit has both plans, this one before the inception.
	Next journal.JobID
	// ExpiresAt is when the closed job is to be removed, set with Tasks; Never:
	// it is kept.
	ExpiresAt Micros
}

// ResolvedWait is a pause that has come: the entry Seq of the main chain holds the
// response that brought it.
type ResolvedWait struct {
	Request journal.GUID
	GUID    journal.GUID // of the wake-up or outcome
	journal.PauseRef
	Seq int64
}

// CancelledWait is a wait that is taken back: a delivery since it was read, which
// deletes or counts it, means decide again.
type CancelledWait struct {
	GUID  journal.GUID
	Count int
}

// LedgerWrite is a test-and-set of one activity ledger (C3), or the insertion
// of a new instance.
type LedgerWrite struct {
	Key           InstanceKey
	New           bool
	Join          bool // positions 5–7 may be used
	Before, After ActivityLedger
	ResultSeq     int64
	Code          int
	More
}

// ReceiptWrite is a test-and-set of one GUID ledger (C3), or the insertion of
// a new receipt. Closes asks the compound statement for the snapshot digit
// (C14); After has it already, and the two must agree. Gone: the receipt goes with the
// row of its message (W12).
type ReceiptWrite struct {
	GUID          journal.GUID
	New           bool
	Before, After GUIDLedger
	Verdict       journal.Verdict
	Seq           int64
	Closes        bool
	Gone          bool
}

// DeadLetter is a message that cannot go on by itself (E10). Its row, if it
// has one, is held.
type DeadLetter struct {
	Job      journal.JobID
	Row      journal.GUID
	Kind     journal.MessageKind
	Activity string
	DAD      DAD
	Reason   string // a short name: parked, confirm, result_misfit, nondeterminism, undo, runs, stuck, undecodable, foreign, refused
	Message  string
	Ledger   ActivityLedger
	Raw      []byte // the message of one without a row, for a person; it is never read back
}
