package store

import (
	"context"
	"iter"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of the ports.
const (
	MaxBatch = 500          // messages per transaction (T11)
	MaxPlans = 2 * MaxBatch // of a transaction: a start has an inception and its first steps
	MaxSweep = 1000
	MaxRuns  = collation.MaxRuns
)

// Engine is what the loop needs: committers, the sweeper's claims, flows.
type Engine interface {
	// Committer opens a committer on a connection of its own, with a new
	// session number (L1). It is not safe for concurrent use. A patient one waits
	// for what others hold, as long as a commit may take; the others give up soon,
	// with ErrBusy, so that nobody's transaction stalls a batch (W3).
	Committer(ctx context.Context, patient bool) (Committer, error)
	Joiner
	Sessions
	Requests
	Bodies
	// Due lists rows that are due and not held, oldest first, without locking
	// them, at most limit (≤ MaxSweep).
	Due(ctx context.Context, limit int) ([]DueRow, Timing, error)
	// Announced calls told when a commit, of whatever process, has left something due
	// that nobody publishes, until ctx ends or the connection does, which is an error.
	// It is a hint: a process announces no more than once a second (W9).
	Announced(ctx context.Context, told func()) error
	// Claim takes due rows for sending: test-and-set on publication and turn,
	// FOR UPDATE SKIP LOCKED. Rows to send get publication + 1, turn sent, the
	// time and their next due time; the others only the next due time. It
	// returns the rows to send that were won, with what publishing needs (T2).
	Claim(ctx context.Context, claims []Claim) ([]Outgoing, error)
	// Late lists requests of open jobs that are past their within_at (E9), the oldest
	// first, without locking them, at most limit (≤ MaxSweep). collation.Overdue says
	// what becomes of each.
	Late(ctx context.Context, limit int) ([]collation.RowKey, error)
	// Flow returns the canonical definition of a deployed flow version.
	Flow(ctx context.Context, name, version string) ([]byte, error)
	// ActiveFlow returns the version for new jobs, as for Client.
	ActiveFlow(ctx context.Context, name string) (ref journal.FlowRef, canonical []byte, err error)
	// ExpireDefault is how long closed jobs are kept whose flow does not say it; 0: for
	// good (W11).
	ExpireDefault(ctx context.Context) (time.Duration, error)
	// Deploy is Operator's: flows of the runtime's own (3.5).
	Deploy(ctx context.Context, ref journal.FlowRef, canonical []byte, activate bool) (fresh bool, err error)
	// Letter reads a dead letter, without a lock: ErrNotFound.
	Letter(ctx context.Context, id int64) (*collation.Letter, error)
	// Epoch is the space's epoch (T4).
	Epoch(ctx context.Context) (int64, error)
	// Prune removes batch markers that are older than MarkerAge (J4), whose
	// outcome was found out long ago, and the records of signals that are older than
	// SignalAge and not kept any more; at most limit of each.
	Prune(ctx context.Context, limit int) (int, error)

	// Extend makes room for the jobs to come, where the store has to (W10): it is to be
	// asked from time to time, long before it is needed. ErrPartition: others have to.
	Extend(ctx context.Context) error

	// LateSignals is Late for kept signals whose time has passed (1.11), which
	// collation.Lapse ends.
	LateSignals(ctx context.Context, limit int) ([]collation.RowKey, error)

	Retention
}

// Retention ends what has been kept long enough. It needs the rights of retention.
type Retention interface {
	// Expire makes tombstones of closed jobs whose time has passed, and removes what
	// is open of them (J7); their history is shown to nobody from then on. Tombstones
	// that are TombstoneAge old end, once their history is gone, and raise the floor of
	// generations: no key begins again in a generation that it had (W11). At most
	// limit rows of each table: more says that there is more to do. A job stays while
	// a job of its compensations is ordered or not closed (3.5).
	Expire(ctx context.Context, limit int) (more bool, err error)
	// Retire drops the history of tombstones, by whole partitions of which all jobs
	// have expired, once archive, where there is one, has kept it (W11). A job that
	// outlives its partition is moved to one whose jobs are kept for longer, with its
	// chains checked. It does a bounded part: more says that there is more to do. One
	// process does it at a time; for others there is nothing to do. ErrOwner.
	Retire(ctx context.Context, archive Archive) (more bool, err error)
}

// Archive keeps the jobs of a partition before it is dropped; an error keeps the
// partition. name is the partition's, for the name of a file. each visits its jobs, in
// the order in which they began.
type Archive func(ctx context.Context, name string, each func(visit Visit) error) error

// Visit is given a job of a partition: its header, the digest under which its flow
// version is deployed, zero for one that is not, and its entries, to be read once.
type Visit func(job *collation.Job, flow journal.Digest, entries iter.Seq2[journal.Record, error]) error

// Ages of what only guards against repetition.
const (
	MarkerAge    = 24 * time.Hour
	SignalAge    = 30 * 24 * time.Hour
	TombstoneAge = 30 * 24 * time.Hour // of a tombstone, from when its job expired
)

// Want is what one item needs locked and read. What is zero is not wanted.
type Want struct {
	// Job is to be locked, and read with what else a message needs of it. Results
	// are addresses of outputs that its expressions mention.
	Job       journal.JobID
	Instances []collation.InstanceKey
	Receipt   journal.GUID
	Row       journal.GUID
	Results   []collation.InstanceKey
	// Whole asks for everything of a young and small job besides, so that its next
	// messages need no Load (W6): its state is Whole then. One that is neither is
	// read as without.
	Whole bool
	// Key asks who has the key of a start.
	Key string
	// Order is a child that may have to be begun: the row of its start is locked.
	Order journal.JobID
	// Chain is a request of which Effects are to begin or to end: its row is locked,
	// and its job is not. Where the row has gone, a Load that waits locks the job.
	Chain   collation.RowKey
	Effects []journal.Digest
	// Past asks what the generations have of these effects that the job resumes.
	Past bool
	// Box is a mailbox: it is locked, and read with what is due in it, as many of its
	// waits as there are wants of it, and the row of Signal, zero for none.
	Box    journal.JobID
	Signal journal.GUID
	// Known is a signal or an interrupt from outside: what became of it, if it was here before.
	Known journal.GUID
	// Letter is the id of a dead letter, read once the rows are locked.
	Letter int64
}

// Joiner lets a transaction of somebody else's take part (E17).
type Joiner interface {
	// Join runs do inside a transaction of the caller's own, tx, which is the
	// store's handle, so that what do commits is committed or rolled back by the
	// caller. Load waits for what others hold. After an error of do nothing of it
	// is left. do is asked again after a lost test-and-set (C3).
	Join(ctx context.Context, tx any, do func(Tx) error) error
}

// Tx is one transaction: what a decision meets is loaded, what it changes is
// committed.
type Tx interface {
	// Load is that of Committer.
	Load(ctx context.Context, wants []Want, wait bool) (*Loaded, error)
	// Commit is that of Committer.
	Commit(ctx context.Context, plans []Chained) error
}

// Committer carries batches, one transaction each: Load opens it, Commit or
// Rollback ends it (J6).
type Committer interface {
	// Load locks the jobs of the wants in the order of their ids, in a
	// statement of its own, then reads (J3). With wait false, what another
	// transaction holds is left out of the result (SKIP LOCKED); with wait
	// true it waits for them. States are keyed by job; a job that does not
	// exist is absent from both. One round trip.
	Load(ctx context.Context, wants []Want, wait bool) (*Loaded, error)
	// More loads what decisions missed, into the states and the boxes of the same
	// transaction.
	More(ctx context.Context, needs map[journal.JobID]*collation.Need) error
	// Commit writes the plans, in their order, and commits: one round trip,
	// with a batch marker (session, seq). The context's end does not cancel a
	// COMMIT under way (J4). A commit of unknown outcome is resolved through
	// its marker before Commit returns. Plans of one job must be in the order
	// in which they were decided, their entries chained. A plan needs that its job
	// was loaded before in the transaction, but for inceptions and what has a Guard.
	// A test-and-set that names what it lost to is a *LostError.
	Commit(ctx context.Context, plans []Chained) error
	// Rollback ends the transaction without a trace. It is harmless without
	// one.
	Rollback(ctx context.Context) error
	// Session is the committer's session number; Seq the seq of its last
	// commit.
	Session() (session journal.GUID, seq int64)
	// Close ends the session and its connection.
	Close()
}

// Loaded is the answer of Load.
type Loaded struct {
	Now    collation.Micros
	States map[journal.JobID]*collation.State // Flow is left for the engine to set
	Busy   map[journal.JobID]bool             // left out by SKIP LOCKED
	// Tombstones names jobs of which only the tombstone is left.
	Tombstones map[journal.JobID]bool
	// Holders are what has the keys that were wanted; a free key is absent.
	Holders map[string]*collation.Holder
	// Orders are the rows of the starts of children that have not begun; Busy names
	// those that another transaction holds.
	Orders map[journal.JobID]*collation.Row
	// Chains are those of the requests that were wanted. After a Load that does not
	// wait, one is absent whose row another transaction holds, or has gone.
	Chains map[collation.RowKey]*collation.Chain
	// Boxes are the mailboxes that were wanted; after a Load that does not wait, one
	// is absent that another transaction holds.
	Boxes map[journal.JobID]*collation.Box
	// Known is what became of the signals that were wanted; of others, nothing.
	Known map[journal.GUID]SignalState
	// Letters are the dead letters that were wanted and are there.
	Letters map[int64]*collation.Letter
}

// Bounds of a job that is read whole: its entries, and its instances and rows.
const (
	YoungSeq  = 64
	YoungRows = 256
)

// Chained is a plan whose entry got its bytes and its hash.
type Chained struct {
	Plan *collation.Plan
	Body []byte // empty for a plan without an entry
	Hash journal.Digest
	// Guard is what the first plan of a job was decided on, where that was not
	// loaded in this transaction; nil: it was.
	Guard *Guard
}

// Guard is what has to stand, still, for a decision on a hot state to hold (W6). The
// commit locks it first, waiting for nobody, and compares; what it lost is a
// LostError that names the jobs.
type Guard struct {
	State     journal.JobState
	Semaphore int64
	Head      journal.Head
	Rows      []RowGuard // the rows that the plans of the job move or delete
}

// RowGuard is a dispatch row as it was when it was read.
type RowGuard struct {
	GUID journal.GUID
	Rev  int64
}

// Timing is what a look for due rows says of the time.
type Timing struct {
	Lag  time.Duration // how long the first is overdue
	Next time.Duration // until the next row is due, or a request is late; 0: there is none
	Late bool          // there may be what Late lists
}

// DueRow is a candidate for sending.
type DueRow struct {
	Job         journal.JobID
	GUID        journal.GUID
	Kind        journal.MessageKind
	Topic       string
	Publication int
	Turn        int
	TurnSent    int
	PublishedAt collation.Micros
	Now         collation.Micros
}

// Claim is the decision on a DueRow: send it, or look again later.
type Claim struct {
	Row   DueRow
	Send  bool
	Again time.Duration // until the row is due again
	// Session is that of the process that sends it; 0: none (W8).
	Session int64
}

// Outgoing is a row with what its message carries besides.
type Outgoing struct {
	Row        collation.Row
	JobKey     string
	Generation int64
	Flow       journal.FlowRef
	Trace      string
	Taken      bool // by the row's holder, in the process that committed it (W7)
	// Root and its generation are whose name the keys of effects have, of a job that
	// resumes another (E1); zero of any other.
	Root           journal.JobID
	RootGeneration int64
}

// SetRoot sets it for a job with the origin; nil: it resumes none.
func (o *Outgoing) SetRoot(from *journal.From) {
	if from != nil {
		o.Root, o.RootGeneration = from.Root, from.RootGeneration
	}
}
