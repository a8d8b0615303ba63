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
	// Stale: refused for good by the state of its job or activity; the verdict commits with the
	// end of its row.
	Stale Outcome = "stale"
	// Settled: its receipt is complete; nothing is written, ack.
	Settled Outcome = "settled"
	// NoRow: no receipt and no row; handled, answered, cancelled or never
	// committed; nothing is written, ack and count.
	NoRow Outcome = "no_row"
	// HeldBack: its row is held for a person; nothing is written, ack (E10).
	HeldBack Outcome = "held"
	// Later: another message of its instance goes first; nothing is written, the message comes
	// again soon.
	Later Outcome = "later"
	// Stopped: the decision took too long (Mode.Stop); nothing is written, and nothing is known of
	// the message.
	Stopped Outcome = "stopped"
	// Stuck: it reached a limit; its row is held, with a dead letter.
	Stuck Outcome = "stuck"
	// Quarantined: the stored state breaks the laws (J1), or the job is quarantined already.
	Quarantined Outcome = "quarantined"
)

// Plan is everything that one message changes, as one value. The order is fixed: the plan is
// committed whole, then its due Insert rows are published, then its message is acked (T2, T3).
// A plan without an Entry changes neither a ledger nor the main chain.
//
// A plan of a job has an Entry, and of the groups those that its step needs. The plan of a mailbox has
// rows and MailboxWrites, and no Entry. That of an effect has a Chain. That of an operator or of a
// repair is one of a job, with the letters that it ends, or a Repair.
type Plan struct {
	Job     journal.JobID
	Message journal.GUID
	Outcome Outcome
	// Done says that no step of the message is left after this plan. Under Stepwise the message
	// is stepped again until then.
	Done bool

	Entry     *journal.Entry // Seq is set; the engine sets the hash
	Ledgers   []LedgerWrite
	Receipt   *ReceiptWrite // nil: no receipt changes, or the message is done with this plan alone (W12)
	Semaphore journal.SemaphoreMove
	NewState  journal.JobState // "" unchanged
	BeginningWrites
	EndingWrites
	RowWrites
	WaitWrites
	MailboxWrites
	LetterWrites
	// Repair is what an operator's repair writes besides (S11); nil: it is none.
	Repair *Repair
	// Chain is what the plan writes on the effect chain of a request (J8). It may come without
	// an Entry.
	Chain *ChainWrite
	// Payload is an output that is stored beside the entries of its job, if the job exists.
	Payload *Payload
}

// BeginningWrites belong to an inception.
type BeginningWrites struct {
	// Active says that it commits only if its flow's version is the active one.
	Active bool
	// Keep is how long the job is kept once it has closed; 0: for good.
	Keep time.Duration
}

// EndingWrites are those of a plan that closes its job, or comes after that.
type EndingWrites struct {
	Close *journal.Close // this plan closes the job
	Tasks bool           // this plan ran the completion tasks
	// ExpiresAt is when the closed job may be removed, set with Tasks; Never: it is kept.
	ExpiresAt Micros
	// Next is the job that resumes this closed one and has the key from now on. This plan
	// commits together with, and before, the inception of that job.
	Next journal.JobID
}

// RowWrites are the dispatch rows that a plan inserts, changes and ends.
type RowWrites struct {
	Insert []Row          // Row.Job may be another job
	Update []Row          // new values of the job's own rows that stay
	Delete []journal.GUID // the job's own rows
	// Released are answers among Update that were held and are sent with this commit: elements that
	// an earlier generation has answered, at their turn.
	Released []journal.GUID
	// CancelStarts cancels starts of children that were not handled yet: rows of other jobs with
	// this one as Sender, by test-and-set (C15).
	CancelStarts []RowKey
	// Discard ends rows of any job that can never be handled, if they exist.
	Discard []RowKey
	// Session is the session of the run for which the plan takes a request, or begins an effect.
	// It must last until the commit. 0: none (W8).
	Session int64
}

// WaitWrites are the waits of its own job that a plan registers and ends.
type WaitWrites struct {
	Waits        []Wait          // registered under the lock of the key, whose kept signals become due (J3)
	Sending      Sending         // of these kept signals
	CancelWaits  []CancelledWait // by test-and-set
	ResolvedWait *ResolvedWait   // recorded by this plan (E12)
}

// MailboxWrites are those of a mailbox, whose id is then the plan's Job, and the records beside it.
type MailboxWrites struct {
	Taken []Taken // waits of any job that its signals have ended
	// Signals is what became of signals, of interrupts that came too late, and of starts that
	// clients asked for.
	Signals []SignalWrite
}

// LetterWrites are the dead letters that a plan writes and ends.
type LetterWrites struct {
	Dead    []DeadLetter
	Resolve []journal.GUID // rows whose open dead letter ends with this plan
	Letters []LetterEnd    // ended by an operator, by test-and-set
}

// Sending says how the kept signals are sent that become due with a commit. The process that
// commits publishes them, as it does its own rows: they are due again after Resend, and Session is
// its session (T2, W8). The zero Sending leaves them to the sweeper.
type Sending struct {
	Resend  Micros
	Session int64
}

// Publish makes the row of a kept signal due.
func (x Sending) Publish(r *Row, now Micros) {
	r.Held, r.NextAt = "", now
	if x.Resend > 0 {
		r.published(now, &Mode{Resend: x.Resend, Session: x.Session})
	}
}

// ResolvedWait is a pause that has come. Entry Seq of the main chain holds the response that
// brought it.
type ResolvedWait struct {
	Request journal.GUID
	GUID    journal.GUID // of the wake-up or outcome
	journal.PauseRef
	Seq int64
}

// CancelledWait is a wait to cancel. If a delivery has deleted or counted it since it was read,
// the decision is made again.
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

// ReceiptWrite is a test-and-set of one GUID ledger (C3), or the insertion of a new receipt.
// Closes asks the compound statement for the closed digit (C14). After has the digit already,
// and the two must agree. Gone: the receipt is deleted with the row of its message (W12).
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
	// a short name: parked, confirm, result_misfit, nondeterminism, undo, runs, stuck, slow, loads,
	// undecodable, foreign, refused, changed
	Reason  string
	Message string
	Ledger  ActivityLedger
	Raw     []byte // the message itself, if it has no row: for a person, never read back
	// Unclaimed says that no row was read for the message: anybody may have sent it. Retention bounds
	// such dead letters (S15). It is never read back.
	Unclaimed bool
}

// Size is what an unclaimed dead letter counts for in the bound of retention, in bytes (S15).
func (d *DeadLetter) Size() int {
	return len(d.Activity) + len(d.DAD) + len(d.Message) + len(d.Raw)
}
