package view

import (
	"encoding/json"
	"time"

	"github.com/quipu-journal/quipu/journal"
)

// Summary is a job in a list.
type Summary struct {
	Key        string           `json:"key"`
	ID         journal.JobID    `json:"job"`
	Generation int64            `json:"generation"` // how often the key has been used, from 1
	Flow       string           `json:"flow"`
	Version    string           `json:"version"`
	State      journal.JobState `json:"state"`
	Semaphore  int64            `json:"semaphore"` // open obligations: at 0 the job closes
	Entries    int64            `json:"entries"`   // of its main chain
	Head       journal.Digest   `json:"head,omitzero"`
	Tags       []string         `json:"tags,omitempty"`
	Started    time.Time        `json:"started"`
	Closed     time.Time        `json:"closed,omitzero"`
	// Note is why it failed, or what an open one waits for, in a few words; only lists have it.
	Note string `json:"note,omitempty"`
}

// Job is one job. Lists that were not asked for are empty.
type Job struct {
	Summary
	// At is the entry that the job is shown at; nil: it is shown as it stands.
	At    *Point `json:"at,omitempty"`
	Ended bool   `json:"ended"`          // closed, and its completion tasks are done
	Code  int    `json:"code,omitempty"` // 200, or that of its error; 0 while open
	// Input is told by the journal.
	Input   *Value          `json:"input,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"` // canonical; set once it has Ended
	Error   *Failure        `json:"error,omitempty"`
	Hidden  bool            `json:"hidden,omitempty"` // payloads are left out: who asks may not see them
	Expires time.Time       `json:"expires,omitzero"` // when it is removed; zero: it is open, or kept for good
	Trace   string          `json:"trace,omitempty"`  // W3C traceparent
	Parent  *Parent         `json:"parent,omitempty"` // nil: no other job started it
	// Resumes is the job that this one continues, ResumedBy the one that continues it. Both have the
	// same key.
	Resumes   journal.JobID `json:"resumes,omitzero"`
	ResumedBy journal.JobID `json:"resumed_by,omitzero"`
	// ForkOf is the job from whose entry ForkAt this one goes on.
	ForkOf journal.JobID `json:"fork_of,omitzero"`
	ForkAt int64         `json:"fork_at,omitempty"`
	// HistoryError says why what the journal tells is missing although it was asked for.
	HistoryError string `json:"history_error,omitempty"`

	// HistoryLeft says that the journal is long, and was not read.
	HistoryLeft bool `json:"history_left,omitempty"`

	// Graph has how far each activity of the flow is; empty if this build cannot read the flow.
	Graph []Standing `json:"graph,omitempty"`
	// Activities are the instances that the job has reached, one for each pass, and the elements of
	// lists, of which the journal tells.
	Activities []Activity `json:"activities"`
	// Messages are the open ones: sent, due, due later, or held. Where all are asked for, they are all
	// that the journal names, in that order.
	Messages []Message `json:"messages"`
	Waits    []Wait    `json:"waits"`
	Children []Child   `json:"children,omitempty"`
	// Pauses are what durable functions wait or waited for, as the journal tells.
	Pauses []Pause `json:"pauses,omitempty"`
	// Obligations are the reasons for the Semaphore, as the journal tells.
	Obligations []Obligation `json:"obligations,omitempty"`
	Effects     []Effect     `json:"effects,omitempty"`
	DeadLetters []DeadLetter `json:"dead_letters"` // the oldest first
	Reasons     []Reason     `json:"reasons,omitempty"`
	Events      []Event      `json:"events,omitempty"`
	Tree        *Tree        `json:"tree,omitempty"`
}

// Point is an entry of the main chain.
type Point struct {
	Entry int64        `json:"entry"`
	Of    int64        `json:"of"` // the last entry of the chain
	Kind  journal.Kind `json:"kind"`
	Time  time.Time    `json:"time"`
	// Activity and Address name the instance that it is about; empty: the job.
	Activity string `json:"activity,omitempty"`
	Address  string `json:"address,omitempty"`
}

// Parent is the activity of another job that started a job.
type Parent struct {
	ID       journal.JobID `json:"job"`
	Activity string        `json:"activity"`
	Address  string        `json:"address"`
	Awaited  bool          `json:"awaited"` // it waits for the end
	// Undoes says that the job runs the compensations of a function of that activity.
	Undoes bool `json:"undoes,omitempty"`
}

// Standing is how far one activity of a flow is, by the instance of its last pass.
type Standing struct {
	Activity string `json:"activity"`
	State    State  `json:"state"`
	Code     int    `json:"code,omitempty"` // of its result
	// Instances counts those of all passes, Passes the passes of a pivot or a repeating hook.
	Instances int `json:"instances,omitempty"`
	Passes    int `json:"passes,omitempty"`
	// Ended is how many of Elements have ended, under `each`.
	Ended    int `json:"ended,omitempty"`
	Elements int `json:"elements,omitempty"`
	Arrived  int `json:"arrived,omitempty"` // arrivals of a join
	// Suspended counts its suspended durable functions (E12).
	Suspended int `json:"suspended,omitempty"`
}

// State says how far an activity is.
type State string

// The states of an activity.
const (
	NotReached State = "not reached"
	Skipped    State = "skipped"   // its transitions were decided against it
	Running    State = "running"   // dispatched, or its work is being done
	Waiting    State = "waiting"   // for a response, a signal, a timer, a child, arrivals
	Stuck      State = "stuck"     // waits for a person
	Done       State = "done"      // ended with success
	Failed     State = "failed"    // ended with an error
	Abandoned  State = "abandoned" // open when its job was closed
)

// Activity is one pass of an activity, or one element of its list.
type Activity struct {
	Activity string `json:"activity"`
	Address  string `json:"address"`
	Pass     int    `json:"pass,omitempty"`    // of a loop or of a repeating hook, from 1
	Element  *int   `json:"element,omitempty"` // its place in the list, from 0; nil: it is no element
	State    State  `json:"state"`
	Code     int    `json:"code,omitempty"` // of its result; 0 without one
	// Ledger has its 15 digits (1.2), and Says what they mean. An element has none.
	Ledger journal.Ledger `json:"ledger,omitzero"`
	Says   string         `json:"says,omitempty"`
	// Ended is how many of Elements have ended, under `each`.
	Ended    int           `json:"ended,omitempty"`
	Elements int           `json:"elements,omitempty"`
	Child    journal.JobID `json:"child,omitzero"` // that it waits for, or that it started last

	// What follows is told by the journal. Digits are the groups of its Ledger, Text is what last
	// happened, in a few words.
	Digits   []Digits  `json:"digits,omitempty"`
	Text     string    `json:"text,omitempty"`
	Last     Kind      `json:"last,omitempty"`     // what kind of event that was
	Due      time.Time `json:"due,omitzero"`       // when it goes on without any event
	Attempts int       `json:"attempts,omitempty"` // 0: none, or not counted
	Input    *Value    `json:"input,omitempty"`
	Output   *Value    `json:"output,omitempty"`
	Error    *Failure  `json:"error,omitempty"`
	// Waited is how long it waited, for a worker in all its attempts or for something else; Ran is how
	// long its attempts took together.
	Waited Duration `json:"waited_us,omitzero"`
	Ran    Duration `json:"ran_us,omitzero"`
}

// Wait is an open wait for a signal.
type Wait struct {
	Activity   string    `json:"activity"`
	Address    string    `json:"address"`
	Topic      string    `json:"topic"`
	Key        string    `json:"key"`
	Since      time.Time `json:"since,omitzero"`
	SinceEntry int64     `json:"since_entry,omitempty"`
	Repeat     bool      `json:"repeat"`
	Signals    int       `json:"signals"` // so far, if it repeats
}

// Child is a job that an activity of another job started.
type Child struct {
	ID       journal.JobID    `json:"job"`
	Key      string           `json:"key,omitempty"`   // "": it is not known
	State    journal.JobState `json:"state,omitempty"` // "": it has not begun, or is not known
	Ended    bool             `json:"ended,omitempty"` // waiting for it is over
	Activity string           `json:"activity,omitempty"`
	Address  string           `json:"address,omitempty"`
	// Turn counts the children that the activity has started. Attempt rises with each that failed. Both
	// begin at 1; 0: it is not known.
	Turn       int       `json:"turn,omitempty"`
	Attempt    int       `json:"attempt,omitempty"`
	Starts     time.Time `json:"starts,omitzero"` // not before
	SinceEntry int64     `json:"since_entry,omitempty"`
}

// Pause is something that a durable function waits or waited for.
type Pause struct {
	Kind       journal.PauseKind `json:"kind"`
	Name       string            `json:"name"`
	Position   string            `json:"position"`
	Activity   string            `json:"activity"`
	Address    string            `json:"address"`
	Waits      bool              `json:"waits"` // the function still waits for it
	Due        time.Time         `json:"due,omitzero"`
	SinceEntry int64             `json:"since_entry"`
	CameEntry  int64             `json:"came_entry,omitempty"` // 0: it has not come
}

// Obligation is something that keeps a job from closing (C13).
type Obligation struct {
	Activity   string `json:"activity"`
	Address    string `json:"address"`
	SinceEntry int64  `json:"since_entry"`
}

// Reason is one thing that a job waits for, or how it ended.
type Reason struct {
	// Kind says what it is about, such as person, nobody, retry, signal; docs/cli.md has all.
	Kind     string `json:"kind"`
	Activity string `json:"activity,omitempty"`
	Address  string `json:"address,omitempty"`
	Text     string `json:"text"` // one sentence of few clauses, without a full stop
	// Due is when it goes on without any event.
	Due        time.Time `json:"due,omitzero"`
	DeadLetter int64     `json:"dead_letter,omitempty"` // that a person must decide on
	Remedies   []Remedy  `json:"remedies,omitempty"`    // the likeliest first
	Notes      []string  `json:"notes,omitempty"`       // what else is so, a clause each
}

// Remedy is one thing that a person can do. A word in capitals stands for what only that person knows.
type Remedy struct {
	First   string `json:"first,omitempty"`   // what has to be so, or to be done, before the command; "": nothing
	Command string `json:"command,omitempty"` // "": First is all
}

// Digits is a group of digits of a ledger, and what it means (1.2, 1.3).
type Digits struct {
	Text  string `json:"text"`
	Means string `json:"means"`
	// Set is the entry that last changed the group; nil: none did. One entry is one transaction.
	Set *Stamp `json:"set,omitempty"`
}

// Stamp is an entry of the main chain, when it was written, and by which process.
type Stamp struct {
	Entry  int64     `json:"entry"`
	Time   time.Time `json:"time"`
	Writer string    `json:"writer,omitempty"`
}
