package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// Limits of Client and Operator.
const (
	MaxOutcomes = 500 // jobs per Outcomes call
	MaxPage     = 1000
)

// Start is the request to begin one job. Input is canonical and checked against
// the flow's schema by the caller.
type Start struct {
	Flow    journal.FlowRef
	Active  bool   // Flow was chosen for being active: the start fails if another version is by now
	Trigger string // name of the flow's trigger
	Key     string
	Input   []byte
	Tags    []string // sorted
	// At is the time of the start, Delay its distance from the inception, both by the database's
	// clock. The later one counts.
	At    collation.Micros
	Delay time.Duration
	Trace string
	Who   string // who asked for it, for the journal; "": the process itself
}

// Inception returns the inception that the start asks for, at a time of the database.
func (s *Start) Inception(space string, now collation.Micros) collation.Inception {
	return collation.Inception{
		Space: space, Key: s.Key, Flow: s.Flow, Active: s.Active, Trigger: s.Trigger, Input: s.Input, Tags: s.Tags,
		Trace: s.Trace, Who: s.Who,
		Now: now, At: max(s.At, now+collation.Micros(s.Delay.Microseconds())),
	}
}

// Started is the answer to one Start. Err is an *AlreadyStartedError if the key has a job.
type Started struct {
	Job journal.JobID
	Err error
	// Asked is the record of a start that an engine is still to begin (S8); else zero.
	Asked journal.GUID
}

// Client has the reads of clients, and the writes that do not go through the committer.
type Client interface {
	// FindJob returns the id of the job that has the key: ErrNotFound.
	FindJob(ctx context.Context, key string) (journal.JobID, error)
	// Job reads a job with its instances and open rows: ErrNotFound.
	Job(ctx context.Context, id journal.JobID) (*JobView, error)
	// Ended says of each job whether waiting for it is over: it has ended and its completion
	// tasks are done, or it is quarantined. Unknown ids are absent.
	Ended(ctx context.Context, ids []journal.JobID) (map[journal.JobID]bool, error)
	// Outcomes says how jobs ended, at most MaxOutcomes at a time, including tombstones (W5).
	// Unknown ids are absent.
	Outcomes(ctx context.Context, ids []journal.JobID) (map[journal.JobID]Outcome, error)
	// DeadLetters lists dead letters, newest first.
	DeadLetters(ctx context.Context, f DeadFilter) ([]DeadView, error)
	// JobEffects lists the recorded effects of all requests of a job, in the order of their first
	// entries.
	JobEffects(ctx context.Context, job journal.JobID) ([]JobEffect, error)
	// FindEffect finds the jobs that have the effect key, in the order of their ids. It is at
	// most one, except in merged stores and for a compensation, which is also recorded in the job
	// that ran it.
	FindEffect(ctx context.Context, key journal.Digest) ([]JobEffect, error)
	// ActiveFlow returns the version for new jobs: ErrNotFound.
	ActiveFlow(ctx context.Context, name string) (ref journal.FlowRef, canonical []byte, err error)
	// Flow returns the canonical definition of one version: ErrNotFound.
	Flow(ctx context.Context, name, version string) ([]byte, error)

	// Schedules lists the active flow versions by name, each with the time up to which the
	// scheduled starts of the flow were made. At first that is the time at which the flow was
	// deployed; a version that is activated goes on where the one before stood.
	Schedules(ctx context.Context) ([]Schedule, error)
	// MarkSchedule moves that time forward, from before to after, by test-and-set: ErrLost.
	MarkSchedule(ctx context.Context, name string, before, after collation.Micros) error
}

// Lists has what people and metrics ask, and no engine. The store in memory, which only serves tests,
// does not have it.
type Lists interface {
	// Jobs lists a page of jobs, newest first, without those that another has resumed. It ends
	// early when it has looked at f.Look jobs (O7).
	Jobs(ctx context.Context, f JobFilter) (JobPage, error)
	// CountJobs counts by state the jobs that a filter selects, and says how many jobs it looked
	// at: at most MaxCounted, the newest of its time range (with Tags or a Parent: of the jobs that
	// have them). Before and Limit do not count.
	CountJobs(ctx context.Context, f JobFilter) (counts map[journal.JobState]int64, looked int64, err error)
	// Awaited says what open jobs wait for, at most MaxPage jobs at a time. Of each it looks at
	// MaxAwaited messages, waits and children.
	Awaited(ctx context.Context, ids []journal.JobID) (map[journal.JobID][]Awaited, error)
	// Failing says in which flows jobs have failed since then that nobody has resumed, the last one
	// first. It looks at MaxFailed of each flow, those that started last.
	Failing(ctx context.Context, since collation.Micros) ([]Failing, error)
	// Counts counts the jobs by state, without those that another has resumed.
	Counts(ctx context.Context) (map[journal.JobState]int64, error)
	// Gauges counts what is open and what is late, for metrics (O4). It is cheap however many jobs
	// there are.
	Gauges(ctx context.Context) (*Gauges, error)
	// Flows lists the deployed versions.
	Flows(ctx context.Context) ([]FlowView, error)
	// DroppedLetters says how many unclaimed dead letters retention has dropped (S15).
	DroppedLetters(ctx context.Context) (int64, error)
	// Payload reads an output that is stored beside the journal (E6): ErrNotFound, also for a
	// tombstone. *ChangedError: what is stored has another digest (S9).
	Payload(ctx context.Context, job journal.JobID, digest journal.Digest) ([]byte, error)
}

// SignalState is the outcome of a signal.
type SignalState = collation.SignalState

// The states of a signal.
const (
	SignalConsumed = collation.SignalConsumed
	SignalKept     = collation.SignalKept
	SignalMissed   = collation.SignalMissed
)

// Signalled is the answer to a signal. Duplicate says that the signal's GUID was known; State is
// then what became of the first signal.
type Signalled struct {
	State     SignalState
	Duplicate bool
	Reached   int        // waits that this call woke
	Out       []Outgoing // the wake-ups, which are already being sent
}

// Schedule is an active flow version with the database's time, and the time up to which the
// scheduled starts of the flow were made.
type Schedule struct {
	Ref       journal.FlowRef
	Last, Now collation.Micros
}

// MaxCounted bounds the jobs that CountJobs looks at.
const MaxCounted = 1_000_000

// MaxLook bounds the jobs that one page looks at, MaxAsked those that it asks what they wait for.
const (
	MaxLook  = 20_000
	MaxAsked = 5_000
)

// JobFilter selects a page of jobs. Before is the Cursor of a job, or the Next of a page. A zero
// field selects all.
type JobFilter struct {
	States   []journal.JobState // one of them
	Flow     string
	Version  string           // of the flow
	Prefix   string           // of the key
	Waits    string           // the job is open and waits for this, see Waiting
	Tags     []string         // the job has all of them
	Parent   journal.JobID    // an await or a function of it started the job
	From, To collation.Micros // started from the one until before the other; 0: no bound
	Before   string
	Limit    int // default 100, at most MaxPage
	// Look is how many jobs are compared with what has no index, at most; default MaxLook, with
	// Waits MaxAsked. With Tags or a Parent all are.
	Look int
}

// JobPage is a page of a list of jobs.
type JobPage struct {
	Jobs []JobSummary
	Next string // Before of the next page; "": there is none
	// Searched is when the last job started that was looked at, if the page ends there although it
	// is not full; 0 otherwise.
	Searched collation.Micros
}

// What a job waits for, in JobFilter.Waits.
const (
	WaitsTopic  = "topic"  // a request for a worker, that has its turn; with a name those of this topic
	WaitsSignal = "signal" // a signal; with a name those of this topic
	WaitsTimer  = "timer"  // the end of a sleep
	WaitsChild  = "child"  // the outcome of a job that it started
	WaitsPerson = "person" // a decision about a held message
)

// JobSummary is one line of a list of jobs.
type JobSummary struct {
	collation.Job
	// Closed is Never while open. In a list it is when the row was written, some milliseconds after the
	// end that the journal tells; a JobView has the latter, except of a tombstone.
	Closed collation.Micros
	Cursor string
}

// MaxAwaited bounds the messages, waits and children of one job that Awaited looks at, MaxFailed the
// failed jobs of one flow that Failing does.
const (
	MaxAwaited = 100
	MaxFailed  = 500
)

// WaitsEffect is in Awaited.What alone: an effect whose run is gone, and may not have ended yet (E4).
const WaitsEffect = "effect"

// Awaited is something that an open job waits for, or several alike.
type Awaited struct {
	// What is WaitsTopic, …, or WaitsEffect; "": a message that is on its way to an engine.
	What     string
	Activity string
	Topic    string           // of the request, or of the signal; the name of the effect
	Key      string           // of the signal
	Class    string           // of the effect
	Request  journal.GUID     // of the effect
	Holder   string           // a process that runs such a request, "": none does; or that began the effect
	Attempt  int              // the highest of them
	Lost     int              // runs of an attempt that ended with their process, the most of them (E9)
	Due      collation.Micros // when the first of them is due, 0: that is not known; or the effect has certainly ended
	N        int64            // how many there are
}

// Failing is a flow whose jobs fail.
type Failing struct {
	Flow string
	N    int64            // how many did
	Last collation.Micros // when the last of them did
}

// Outcome is how a job ended. The fields after Ended are zero until then, and for a tombstone.
type Outcome struct {
	Key    string
	State  journal.JobState
	Ended  bool // closed, and its completion tasks are done
	Code   int
	Error  *journal.Failure
	Output []byte // canonical
}

// Over says that waiting for the job is over: it has ended, or it is quarantined and never ends
// by itself (J1).
func (o *Outcome) Over() bool { return o.Ended || o.State == journal.JobQuarantined }

// JobEffect is an effect with the job and the instance it belongs to.
type JobEffect struct {
	EffectRow
	Job      journal.JobID
	Request  journal.GUID
	Activity string
	DAD      string
}

// JobView is one job as an operator sees it.
type JobView struct {
	JobSummary
	Output    []byte // canonical; set once the completion tasks ran
	Code      int
	Error     *journal.Failure
	Ended     bool // closed, and its completion tasks are done
	Instances []InstanceView
	Rows      []collation.Row  // the job's rows and the starts of children that have not begun; by Origin, then GUID
	Waits     []collation.Wait // by Since, then GUID
	Dead      []DeadView
	ExpiresAt collation.Micros // Never: it is kept for good
	Next      journal.JobID    // the job that resumes this one; zero for none
}

// InstanceView is one instance with its digits.
type InstanceView struct {
	Key collation.InstanceKey
	collation.Instance
}

// DeadFilter selects a page of dead letters. A zero field does not filter.
type DeadFilter struct {
	All    bool // also those that have ended
	Flow   string
	Topic  string // of the request, while its row exists
	Reason string
	Prefix string // of the job's key
	// From and To select those that were written from the one until before the other; 0: no bound.
	From, To collation.Micros
	Jobs     []journal.JobID // at most MaxPage; with it only All and Limit of the other fields count
	Before   int64           // the last id of the previous page
	Limit    int             // default 100, at most MaxPage
}

// DeadView is one dead letter.
type DeadView struct {
	ID     int64
	Key    string // of the job, "" for a foreign message
	Flow   string // of the job
	Topic  string // of the request, while its row exists
	At     collation.Micros
	Letter collation.DeadLetter
	State  string // collation.LetterOpen, …
}

// Operator has the writes of deployment and administration.
type Operator interface {
	// Migrate brings the schema to this build's version; forward only.
	Migrate(ctx context.Context) error
	// Deploy stores a flow version. The same content again changes nothing; other content is
	// ErrVersionTaken. A new version is an entry of the space's own chain (S7).
	Deploy(ctx context.Context, d Deployment) (Deployed, error)
	// SetExpireDefault sets how long closed jobs are kept whose flow does not say it; 0 means for
	// good. A value that no flow may have is ErrRejected. It is kept in microseconds. A process
	// reads it once, with its first flow.
	SetExpireDefault(ctx context.Context, d time.Duration) error
	// Activate sets the version for new jobs: ErrNotFound. If that was another one, it is an entry of
	// the space's own chain (S7). who asks, "" is the process.
	Activate(ctx context.Context, name, version, who string) error
}

// Deployment is a flow version that is to be stored.
type Deployment struct {
	Ref       journal.FlowRef
	Canonical []byte
	// Activate lets new jobs take a new version. The first version of a flow they always take.
	Activate bool
	Who      string // who asks, "" is the process
}

// Deployed says what became of a Deployment.
type Deployed struct {
	Fresh  bool // the version was not there before
	Active bool // new jobs take it
}

// FlowView is one deployed version.
type FlowView struct {
	Ref      journal.FlowRef
	Active   bool
	Deployed collation.Micros
}

// Action is an operator's decision on a dead letter.
type Action = collation.Action

// Reader has what verification and export read. It needs only read rights.
type Reader interface {
	// Space is the name of the space.
	Space(ctx context.Context) (string, error)
	// AuditJobs yields job ids in their order: the given ones, or all.
	AuditJobs(ctx context.Context, only []journal.JobID) iter.Seq2[journal.JobID, error]
	// Audit reads what is stored of a job in one snapshot. It passes the tables' rows to visit,
	// with a sequence of the entries: first the main chain, then the other chains, each by seq.
	// Both sequences can be read within visit only.
	Audit(ctx context.Context, id journal.JobID, visit func(*Stored, iter.Seq2[journal.Record, error]) error) error
}

// Stored is what the tables hold of one job beside the journal.
type Stored struct {
	Job            collation.Job
	Instances      map[collation.InstanceKey]collation.Instance
	Waits          map[journal.GUID]collation.Wait
	Receipts       map[journal.GUID]StoredReceipt
	Rows           map[journal.GUID]collation.Row
	Effects        []EffectRow
	ResolvedWaits  map[journal.GUID]collation.ResolvedWait // by the GUID of the message that resolved each
	FlowDigest     journal.Digest
	Next           journal.JobID    // the job that resumes this one; zero for none
	ClosedAt       int64            // seq of the entry that closed the job; 0: none
	TasksAt        int64            // seq of the entry with which its completion tasks were done; 0: none
	KnownExpiredAt collation.Micros // the moment by which it was a tombstone; 0: that is not known, or it is none
	// Attachments yields the definition of the job's flow version, if it is deployed, and then the
	// outputs that are stored beside the entries, by their digests. It is read before the entries,
	// in the same snapshot. nil: nothing of it can be read here.
	Attachments iter.Seq2[journal.Attachment, error]
}

// StoredReceipt is a receipt without its response.
type StoredReceipt = replay.StoredReceipt

// Store is the ports of an engine and of those who ask for single jobs. An adapter implements all
// of them.
type Store interface {
	Engine
	Client
	Operator
	Reader
	// Close ends all connections.
	Close()
}

// CheckExpire refuses a default that no flow may have.
func CheckExpire(d time.Duration) error {
	if d != 0 && (d < flow.MinExpire || d > flow.MaxExpire) {
		return fmt.Errorf("closed jobs are kept for %v to %v, or for good: %v", flow.MinExpire, flow.MaxExpire, d)
	}
	return nil
}
