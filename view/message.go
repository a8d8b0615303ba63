package view

import (
	"time"

	"github.com/quipu-journal/quipu/journal"
)

// Message is one message of a job. What its row says is there while it is open. What the journal says
// of it is there where all messages were asked for (1.3, J10).
type Message struct {
	GUID     journal.GUID        `json:"guid"`
	Kind     journal.MessageKind `json:"kind"`
	Activity string              `json:"activity,omitempty"`
	Address  string              `json:"address,omitempty"`
	Topic    string              `json:"topic,omitempty"`   // of a request
	Element  *int                `json:"element,omitempty"` // its place in the list, from 0; nil: of no list
	ToJob    journal.JobID       `json:"to_job,omitzero"`   // another job that it goes to
	Open     bool                `json:"open"`              // it has a row
	Out      bool                `json:"out,omitempty"`     // it was published in its turn, and nothing came of that yet
	Turn     int                 `json:"turn,omitempty"`    // of a request
	Attempt  int                 `json:"attempt,omitempty"` // of a request
	Runs     int                 `json:"runs,omitempty"`    // that began, of the attempt
	Lost     int                 `json:"lost,omitempty"`    // runs that ended without an answer (E9)
	Sends    int                 `json:"sends,omitempty"`   // how often it was published
	Sent     time.Time           `json:"sent,omitzero"`     // last
	Due      time.Time           `json:"due,omitzero"`      // when it is looked at next; zero: it is not
	Held     Held                `json:"held,omitempty"`    // why it is held; "": it is not
	Holder   string              `json:"holder,omitempty"`  // the run that has it
	Session  int64               `json:"session,omitempty"` // of the Holder
	Pauses   []Awaited           `json:"pauses,omitempty"`  // for which the function of the request waits
	Since    int64               `json:"since_entry"`       // the entry that made it; 0: it came from outside
	Accepted int64               `json:"accepted_entry,omitempty"`
	Last     int64               `json:"last_entry,omitempty"` // that it made
	// Ledger has its 15 digits, and Says what they mean. None: one entry is all that it does, or it was
	// not accepted yet.
	Ledger *journal.Ledger `json:"ledger,omitempty"`
	Says   string          `json:"says,omitempty"`
	// Ordinal is its number among the messages that its activity accepted as Leg2, from 1; 0: it is none
	// of them.
	Ordinal int     `json:"ordinal,omitempty"`
	Verdict Verdict `json:"verdict,omitempty"`
	// CausedBy is the message that dispatched it, or the request that it answers. Causes are the messages
	// that it dispatched.
	CausedBy journal.GUID   `json:"caused_by,omitzero"`
	Causes   []journal.GUID `json:"causes,omitempty"`
}

// Held says why a message is held, and not sent.
type Held string

// Why messages are held.
const (
	HeldParked   Held = "parked"   // a person has to decide (E10)
	HeldStuck    Held = "stuck"    // it cannot be handled; a person has to decide
	HeldParallel Held = "parallel" // an element that waits for its turn
)

// Verdict is what became of a message; "": it is open.
type Verdict string

// The verdicts. The first two are those of entries that accept a message.
const (
	Handled   Verdict = "handled"
	Stale     Verdict = "stale"     // it came too late, and changed nothing
	Answered  Verdict = "answered"  // a request
	Cancelled Verdict = "cancelled" // nobody waits for it any more
	Left      Verdict = "sent"      // to another job, or to whoever waits for the signal
)

// Awaited is one thing that a durable function waits for.
type Awaited struct {
	Kind     journal.PauseKind `json:"kind"`
	Name     string            `json:"name"`
	Position string            `json:"position"`
	Came     bool              `json:"came,omitempty"`
}

// DeadLetter is a message that cannot go on by itself. Its row, if it has one, is held until an operator
// decides or a late answer arrives.
type DeadLetter struct {
	ID       int64               `json:"id"`
	Key      string              `json:"key,omitempty"` // of the job; "" for a message without a job
	Job      journal.JobID       `json:"job,omitzero"`
	Flow     string              `json:"flow,omitempty"`  // of the job
	Topic    string              `json:"topic,omitempty"` // of the request, while its row exists
	State    LetterState         `json:"state"`
	Kind     journal.MessageKind `json:"kind,omitempty"`
	Activity string              `json:"activity,omitempty"`
	Address  string              `json:"address,omitempty"`
	Ledger   journal.Ledger      `json:"ledger,omitzero"` // the instance's, when the dead letter was written
	Reason   LetterReason        `json:"reason"`
	Message  string              `json:"message"`
	At       time.Time           `json:"at"`
}

// LetterReason says in a word why a message cannot go on by itself.
type LetterReason string

// LetterState says what became of a dead letter.
type LetterState string
