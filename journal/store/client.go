package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
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
	Active  bool   // Flow was not asked for: it holds while it is the version for new jobs
	Trigger string // name of the flow's trigger
	Key     string
	Input   []byte
	Tags    []string // sorted
	// At is when the job is to start, and Delay how long after its inception, by the
	// database's clock: the later of the two.
	At    collation.Micros
	Delay time.Duration
	Trace string
}

// Inception is what the start asks for, at a time of the database.
func (s *Start) Inception(space string, now collation.Micros) collation.Inception {
	return collation.Inception{
		Space: space, Key: s.Key, Flow: s.Flow, Active: s.Active, Trigger: s.Trigger, Input: s.Input, Tags: s.Tags, Trace: s.Trace,
		Now: now, At: max(s.At, now+collation.Micros(s.Delay.Microseconds())),
	}
}

// Started is the answer to one Start: Err is an *AlreadyStartedError where the key
// exists.
type Started struct {
	Job journal.JobID
	Err error
}

// Client is what reading needs, and the writes that are not yet the committer's.
type Client interface {
	// FindJob returns the id of the job that has the key: ErrNotFound.
	FindJob(ctx context.Context, key string) (journal.JobID, error)
	// Job reads a job with its instances and open rows: ErrNotFound.
	Job(ctx context.Context, id journal.JobID) (*JobView, error)
	// Ended says of each job whether there is nothing to wait for: it has ended and
	// its completion tasks are done, or it is quarantined. Unknown ids are absent.
	Ended(ctx context.Context, ids []journal.JobID) (map[journal.JobID]bool, error)
	// Outcomes says of jobs, at most MaxOutcomes, how they ended, tombstones among
	// them (W5); unknown ids are absent.
	Outcomes(ctx context.Context, ids []journal.JobID) (map[journal.JobID]Outcome, error)
	// DeadLetters lists dead letters, newest first.
	DeadLetters(ctx context.Context, f DeadFilter) ([]DeadView, error)
	// Payload reads an output that is stored beside the journal (E6): ErrNotFound,
	// also of a tombstone.
	Payload(ctx context.Context, job journal.JobID, digest journal.Digest) ([]byte, error)
	// JobEffects lists the recorded effects of a job, of all its requests, in the order
	// of their first entry.
	JobEffects(ctx context.Context, job journal.JobID) ([]JobEffect, error)
	// FindEffect finds the jobs that have the effect key, in the order of their ids:
	// at most one, but for stores that were merged, and for a compensation, which also
	// the job of its own that ran it has.
	FindEffect(ctx context.Context, key journal.Digest) ([]JobEffect, error)
	// Jobs lists jobs, newest first, but for those that another has resumed.
	Jobs(ctx context.Context, f JobFilter) ([]JobSummary, error)
	// Counts counts the jobs by state, but for those that another has resumed.
	Counts(ctx context.Context) (map[journal.JobState]int64, error)
	// ActiveFlow returns the version for new jobs: ErrNotFound.
	ActiveFlow(ctx context.Context, name string) (ref journal.FlowRef, canonical []byte, err error)
	// Flow returns the canonical definition of one version: ErrNotFound.
	Flow(ctx context.Context, name, version string) ([]byte, error)

	// Schedules lists the active flow versions, by name, with the time up to which
	// scheduled starts were made: at first that of the version's activation.
	Schedules(ctx context.Context) ([]Schedule, error)
	// MarkSchedule moves the time of a schedule by test-and-set: ErrLost.
	MarkSchedule(ctx context.Context, name string, before, after collation.Micros) error
}

// SignalState is what became of a signal.
type SignalState = collation.SignalState

// The states of a signal.
const (
	SignalConsumed = collation.SignalConsumed
	SignalKept     = collation.SignalKept
	SignalMissed   = collation.SignalMissed
)

// Signalled is the answer to a signal. Duplicate says that its GUID was known:
// State is then what became of the first.
type Signalled struct {
	State     SignalState
	Duplicate bool
	Reached   int        // waits, by this call
	Out       []Outgoing // the wake-ups; they are on their way
}

// Schedule is an active flow version and the database's time up to which its
// scheduled starts were made.
type Schedule struct {
	Ref       journal.FlowRef
	Last, Now collation.Micros
}

// JobFilter selects a page of jobs. Before is the Cursor of the page before.
type JobFilter struct {
	State  journal.JobState // "" any
	Flow   string           // "" any
	Prefix string           // of the key
	Tags   []string         // all of them
	Before string
	Limit  int // default 100, at most MaxPage
}

// JobSummary is one line of a list of jobs.
type JobSummary struct {
	collation.Job
	Closed collation.Micros // Never while open
	Cursor string
}

// Outcome is what those are told who wait for the end of a job. What follows Ended
// is zero before that, and of a tombstone.
type Outcome struct {
	Key    string
	State  journal.JobState
	Ended  bool // closed, and its completion tasks are done
	Code   int
	Error  *journal.Failure
	Output []byte // canonical
}

// Over says that there is nothing to wait for: the job has ended, or it is
// quarantined, and nothing of it goes on by itself (J1).
func (o *Outcome) Over() bool { return o.Ended || o.State == journal.JobQuarantined }

// JobEffect is an effect with its place.
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
	Output    []byte // canonical, once the completion tasks ran
	Code      int
	Error     *journal.Failure
	Ended     bool // closed, and its completion tasks are done
	Instances []InstanceView
	Rows      []collation.Row  // own rows, and starts that the job ordered and that have not begun; by Origin, then GUID
	Waits     []collation.Wait // by Since, then GUID
	Dead      []DeadView
	ExpiresAt collation.Micros // Never: kept
	Next      journal.JobID    // that resumes it; zero for none
}

// InstanceView is one instance with its digits.
type InstanceView struct {
	Key collation.InstanceKey
	collation.Instance
}

// DeadFilter selects a page of dead letters. What is zero is not asked for.
type DeadFilter struct {
	All    bool // those that have ended, too
	Flow   string
	Topic  string // of a request that is there still
	Reason string
	Jobs   []journal.JobID // at most MaxPage: of these alone, whatever else is asked for but All
	Before int64           // the last id of the page before
	Limit  int             // default 100, at most MaxPage
}

// DeadView is one dead letter.
type DeadView struct {
	ID     int64
	Key    string // of the job, "" for a foreign message
	Flow   string // of the job
	Topic  string // of its request, where that is there still
	At     collation.Micros
	Letter collation.DeadLetter
	State  string // collation.LetterOpen, …
}

// Operator is what deploying needs, and reading dead letters.
type Operator interface {
	// Migrate brings the schema to this build's version; forward only.
	Migrate(ctx context.Context) error
	// Deploy stores a flow version. With activate a fresh one is the version for new
	// jobs from then on, as the first of a flow always is. The same content again
	// changes nothing; other content is ErrVersionTaken.
	Deploy(ctx context.Context, ref journal.FlowRef, canonical []byte, activate bool) (fresh bool, err error)
	// SetExpireDefault says how long closed jobs are kept whose flow does not say it, 0
	// for good: ErrRejected for what no flow may say. It is kept in microseconds. A
	// process reads it once, with its first flow.
	SetExpireDefault(ctx context.Context, d time.Duration) error
	// Activate sets the version for new jobs: ErrNotFound.
	Activate(ctx context.Context, name, version string) error
	// Flows lists the deployed versions.
	Flows(ctx context.Context) ([]FlowView, error)
}

// FlowView is one deployed version.
type FlowView struct {
	Ref      journal.FlowRef
	Active   bool
	Deployed collation.Micros
}

// Action is an operator's decision on a dead letter.
type Action = collation.Action

// Reader is what verification and export need. It needs read rights only.
type Reader interface {
	// Space is the name of the space.
	Space(ctx context.Context) (string, error)
	// AuditJobs yields the ids of jobs, in the order of their ids; all of them, or
	// those given.
	AuditJobs(ctx context.Context, only []journal.JobID) iter.Seq2[journal.JobID, error]
	// Audit reads, in one snapshot, what is stored of a job besides its
	// entries, and yields its entries: main chain first, then the other chains,
	// each by seq.
	Audit(ctx context.Context, id journal.JobID, visit func(*Stored, iter.Seq2[journal.Record, error]) error) error
}

// Stored is what the tables hold of one job beside the journal.
type Stored struct {
	Job           collation.Job
	Instances     map[collation.InstanceKey]collation.ActivityLedger // those with digits
	Open          map[collation.InstanceKey]int                      // elements that have not ended, where there are any
	Waits         map[journal.GUID]collation.Wait
	Receipts      map[journal.GUID]StoredReceipt
	Rows          map[journal.GUID]collation.Row
	Effects       []EffectRow
	ResolvedWaits map[journal.GUID]collation.ResolvedWait // what functions waited for, by the message that brought it
	FlowDigest    journal.Digest
	Next          journal.JobID // that resumes it; zero for none
}

// StoredReceipt is a receipt without its response.
type StoredReceipt struct {
	Ledger  collation.GUIDLedger
	Verdict journal.Verdict
}

// Store is everything; adapters implement it whole.
type Store interface {
	Engine
	Client
	Operator
	Reader
	// Close ends all connections.
	Close()
}

// CheckExpire refuses a default that no flow may say.
func CheckExpire(d time.Duration) error {
	if d != 0 && (d < flow.MinExpire || d > flow.MaxExpire) {
		return fmt.Errorf("closed jobs are kept for %v to %v, or for good: %v", flow.MinExpire, flow.MaxExpire, d)
	}
	return nil
}
