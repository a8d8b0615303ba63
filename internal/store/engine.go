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
	MaxPlans = 8 * MaxBatch // per transaction: a message has a plan, and more that it causes (L2)
	MaxSweep = 1000
	MaxRuns  = collation.MaxRuns
)

// Engine has what the engine's loop needs: committers, the sweeper's claims, flows.
type Engine interface {
	// Committer opens a committer on a connection of its own, with a new session number (L1). It
	// is not safe for concurrent use. A patient one waits for another transaction's locks as long
	// as a commit may take. The others soon give up with ErrBusy, so that no foreign transaction
	// stalls a batch (W3).
	Committer(ctx context.Context, patient bool) (Committer, error)
	Joiner
	Sessions
	Requests
	Bodies
	// Due lists rows that are due and not held, oldest first, at most limit (≤ MaxSweep). It
	// locks nothing.
	Due(ctx context.Context, limit int) ([]DueRow, Timing, error)
	// Announced calls told when a commit of any process has left something due that nobody
	// publishes, until ctx ends or the connection breaks, which is an error. It is only a hint: a
	// process announces at most once a second (W9).
	Announced(ctx context.Context, told func()) error
	// Claim takes due rows for sending (T2), by test-and-set on publication and turn with SKIP
	// LOCKED. A row to send gets publication + 1, turn_sent, the time and its next due time; any
	// other row gets only the next due time. Claim returns the rows to send that it won. A row whose
	// message the bus has refused need not be due: it is noted as not sent (NoTurn).
	Claim(ctx context.Context, claims []Claim) ([]Outgoing, error)
	// Late lists rows that are past their within_at, the oldest first, at most limit (≤ MaxSweep):
	// requests of open jobs (E9), each of which collation.Overdue decides, or kept signals (1.11),
	// which collation.Lapse ends. It locks nothing.
	Late(ctx context.Context, kind journal.MessageKind, limit int) ([]collation.RowKey, error)
	// Publications returns, for each of at most MaxSweep keys, the publication of that row, if it is
	// of a request that is not held; 0 for every other, and for one that is gone. It locks nothing.
	Publications(ctx context.Context, rows []collation.RowKey) ([]int, error)
	// Flow returns the canonical definition of a deployed flow version.
	Flow(ctx context.Context, name, version string) ([]byte, error)
	// ActiveFlow is that of Client.
	ActiveFlow(ctx context.Context, name string) (ref journal.FlowRef, canonical []byte, err error)
	// ExpireDefault returns how long closed jobs are kept whose flow does not say it; 0 means for
	// good (W11).
	ExpireDefault(ctx context.Context) (time.Duration, error)
	// Deploy is that of Operator, for the runtime's built-in flows (3.5).
	Deploy(ctx context.Context, d Deployment) (Deployed, error)
	// Letter reads a dead letter without a lock: ErrNotFound.
	Letter(ctx context.Context, id int64) (*collation.Letter, error)
	// Epoch returns the space's epoch (T4).
	Epoch(ctx context.Context) (int64, error)
	// Prune removes batch markers older than MarkerAge (J4), whose outcomes are known by then,
	// and records of signals that are older than SignalAge and no longer kept; at most limit of
	// each.
	Prune(ctx context.Context, limit int) (int, error)

	// Extend prepares the store for future jobs where it has to (W10). The engine calls it now
	// and then, long before it is needed. ErrPartition says that this process may not do it.
	Extend(ctx context.Context) error

	Retention
}

// Retention removes what has been kept long enough. It needs the rights of retention.
type Retention interface {
	// Expire turns closed jobs whose time has passed into tombstones and removes their open rows
	// (J7); from then on their history is hidden. It ends tombstones of age TombstoneAge whose
	// history is gone, and raises the floor of generations, so that no key gets a generation
	// twice (W11). Of dead letters that are unclaimed the newest MaxUnclaimed stay, with at most
	// MaxUnclaimedBytes; the others are dropped and counted (S15). It changes at most limit rows of
	// each table; more says that there is more to do. A job stays while a job of its compensations
	// is ordered or not closed (3.5), while the last job that resumes it is not closed or can be
	// resumed itself, and while a fork of it is not closed.
	Expire(ctx context.Context, limit int) (more bool, err error)
	// Retire drops the history of tombstones (W11), in whole partitions whose jobs have all
	// expired. archive, if any, keeps a partition first. A job that outlives its partition moves
	// to a class that is kept longer, and its chains are checked. A call does a bounded part;
	// more says that there is more to do. Only one process does it at a time; others find nothing
	// to do. ErrOwner.
	Retire(ctx context.Context, archive Archive) (more bool, err error)
	// Extend is that of Engine: where the logins of engines may not act as the owner, that of
	// retention may.
	Extend(ctx context.Context) error
}

// Bounds of the dead letters of a space for whose messages no row was read (S15): anybody who can
// publish may have sent these.
const (
	MaxUnclaimed      = 1000
	MaxUnclaimedBytes = 16 << 20 // of their texts and messages: collation.DeadLetter.Size
)

// Archive keeps the jobs of a partition before it is dropped; after an error the partition stays.
// name identifies the partition, for a file name. each visits its jobs in the order in which they
// began.
type Archive func(ctx context.Context, name string, each func(visit Visit) error) error

// Visit takes one job of a partition: its header, the digest of its flow version (zero if that is
// not deployed), what is stored beside its entries, as Stored.Attachments has it, and its entries. Each
// sequence can be read once, in this order.
type Visit func(job *collation.Job, flow journal.Digest, attachments iter.Seq2[journal.Attachment, error],
	entries iter.Seq2[journal.Record, error]) error

// How long records are kept that only guard against repetition.
const (
	MarkerAge    = 24 * time.Hour
	SignalAge    = 30 * 24 * time.Hour
	TombstoneAge = 30 * 24 * time.Hour // counted from when its job expired
)

// Want names what one item needs locked and read. A zero field asks for nothing.
type Want struct {
	// Job is to be locked and read. Results are addresses of outputs that the message's
	// expressions use.
	Job       journal.JobID
	Instances []collation.InstanceKey
	Receipt   journal.GUID
	Row       journal.GUID
	Results   []collation.InstanceKey
	// Whole asks for the whole state of a young and small job, so that its next messages need no
	// Load (W6); its state is Whole then. Any other job is read as without Whole.
	Whole bool
	// Key is the key of a start: which job has it?
	Key string
	// Order is a child that may have to begin: the row of its start is locked.
	Order journal.JobID
	// Chain is a request on which Effects begin or end: its row is locked, not its job. If the
	// row has gone, a Load that waits locks the job instead.
	Chain   collation.RowKey
	Effects []journal.Digest
	// Past asks for these effects in the generations that the job resumes, too: for those of the topic that
	// the request has now. A worker's login chooses keys, but no topic (S8). If the row has gone there are none.
	Past bool
	// Box is a mailbox. It is locked and read with its due signals, with one of its waits for
	// each want of the box, and with the row of Signal, if that is not zero.
	Box    journal.JobID
	Signal journal.GUID
	// Known is a message from outside, a signal, an interrupt or the start of a client, with what it is
	// addressed to: was it here before, and what became of it?
	Known collation.RowKey
	// Letter is the id of a dead letter. It is read once the rows are locked.
	Letter int64
}

// Joiner works inside a caller's transaction (E17).
type Joiner interface {
	// Join runs do inside the caller's transaction tx, which is the store's handle. The caller
	// commits what do wrote, or rolls it back. Load waits for other transactions' locks. After an
	// error of do nothing of it is left. After a lost test-and-set do runs again (C3).
	Join(ctx context.Context, tx any, do func(Tx) error) error
}

// Tx is one transaction: Load reads what a decision needs, Commit writes its plans.
type Tx interface {
	// Load is that of Committer.
	Load(ctx context.Context, wants []Want, wait bool) (*Loaded, error)
	// Commit is that of Committer.
	Commit(ctx context.Context, plans []Chained) error
}

// Committer commits batches, one transaction each: Load opens it, Commit or Rollback ends it
// (J6).
type Committer interface {
	// Load locks the wanted jobs in the order of their ids, in a statement of its own, and then
	// reads (J3), in one round trip. With wait false it leaves out what another transaction has
	// locked (SKIP LOCKED); with wait true it waits. States are keyed by job; a job that does not
	// exist is neither in States nor in Busy.
	Load(ctx context.Context, wants []Want, wait bool) (*Loaded, error)
	// More loads what decisions still need, into the states and boxes of the same transaction.
	More(ctx context.Context, needs map[journal.JobID]*collation.Need) error
	// Commit writes the plans in their order and commits, in one round trip, with a batch marker
	// (session, seq). The end of ctx does not cancel a running COMMIT (J4); an unknown outcome is
	// resolved by the marker before Commit returns. Plans of one job come in the order of their
	// decisions, with chained entries. Their job was loaded in this transaction, except for
	// inceptions and plans with a Guard. If a test-and-set lost and says to what, the error is a
	// *LostError.
	Commit(ctx context.Context, plans []Chained) error
	// Rollback ends the transaction without a trace. Without one it does nothing.
	Rollback(ctx context.Context) error
	// Released returns the kept signals that the last commit made due and that its process is to
	// publish (collation.Sending), with what their messages carry, those of a mailbox oldest first.
	// After an outcome that was unknown at first it knows none: their rows send them.
	Released() []Outgoing
	// Session returns the committer's session number and the seq of its last commit.
	Session() (session journal.GUID, seq int64)
	// Close ends the session and its connection.
	Close()
}

// Loaded is the answer of Load.
type Loaded struct {
	Now    collation.Micros
	States map[journal.JobID]*collation.State // without the Flow, which the engine sets
	Busy   map[journal.JobID]bool             // left out by SKIP LOCKED
	// Tombstones are the jobs of which only a tombstone is left.
	Tombstones map[journal.JobID]bool
	// Holders are the jobs that have the wanted keys; a free key is absent.
	Holders map[string]*collation.Holder
	// Orders are the rows of the starts of children that have not begun. Those that another
	// transaction has locked are in Busy.
	Orders map[journal.JobID]*collation.Row
	// Chains are those of the wanted requests. A Load that does not wait leaves out those whose
	// row has gone or is locked by another transaction.
	Chains map[collation.RowKey]*collation.Chain
	// Boxes are the wanted mailboxes. A Load that does not wait leaves out those that another
	// transaction has locked.
	Boxes map[journal.JobID]*collation.Box
	// Known has what became of the wanted signals; unknown ones are absent.
	Known map[collation.RowKey]SignalState
	// Reasons are why those of them were refused that are starts of clients.
	Reasons map[collation.RowKey]string
	// Letters are the wanted dead letters that exist.
	Letters map[int64]*collation.Letter
}

// Bounds for reading a job whole: its entries, and its instances and rows.
const (
	YoungSeq  = 64
	YoungRows = 256
)

// Chained is a plan whose entry got its bytes and its hash.
type Chained struct {
	Plan *collation.Plan
	Body []byte // empty for a plan without an entry
	Hash journal.Digest
	// Guard is set on the first plan of a job that was decided on a hot state; nil if the job was
	// loaded in this transaction.
	Guard *Guard
}

// Guard is what must be unchanged for a decision on a hot state to hold (W6). The commit compares
// it. A LostError names the jobs that lost, or that another transaction holds; a committer that is
// not patient waits for such a lock only briefly.
type Guard struct {
	State     journal.JobState
	Semaphore int64
	Head      journal.Head
	Rows      []RowGuard // the rows that the job's plans move or delete
}

// RowGuard is the version at which a dispatch row was read.
type RowGuard struct {
	GUID journal.GUID
	Rev  int64
}

// Timing says when the sweeper has work.
type Timing struct {
	Next time.Duration // until the next row is due or a request is late; 0: there is none
	Late bool          // Late may have something to list
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
	Runs        int
	PublishedAt collation.Micros
	Now         collation.Micros
}

// Claim is the decision on a DueRow: send it, or look again later.
type Claim struct {
	Row  DueRow
	Send bool
	// Refused says that the bus has refused this publication. Of Row then only the key, the
	// publication and the turn count.
	Refused bool
	Again   time.Duration // until the row is due again
	// Session is the session of the process that sends it; 0 for none (W8).
	Session int64
}

// Outgoing is a row with everything its message carries.
type Outgoing struct {
	Row        collation.Row
	JobKey     string
	Generation int64
	Flow       journal.FlowRef
	Trace      string
	Taken      bool // the row's holder has it, in the process that committed it (W7)
	// Root and RootGeneration name the first job of those that resume each other; effect keys
	// contain them (E1). Zero for a job that resumes none.
	Root           journal.JobID
	RootGeneration int64
}

// Know notes what became of a wanted signal.
func (l *Loaded) Know(k collation.RowKey, state SignalState, reason string) {
	l.Known[k] = state
	if reason == "" {
		return
	}
	if l.Reasons == nil {
		l.Reasons = map[collation.RowKey]string{}
	}
	l.Reasons[k] = reason
}

// OutgoingSignal is a signal's row with what its message carries, which is less than the signal.
func OutgoingSignal(box journal.JobID, guid journal.GUID, publication int, at collation.Micros) Outgoing {
	return Outgoing{Row: collation.Row{
		GUID: guid, Job: box, Kind: journal.MessageSignal, DAD: collation.RootDAD, Publication: publication,
		PublishedAt: at,
	}}
}

// SetRoot sets Root from a job's origin; nil means that it resumes none, and a fork resumes none.
func (o *Outgoing) SetRoot(from *journal.From) {
	if from != nil && !from.Forks() {
		o.Root, o.RootGeneration = from.Root, from.RootGeneration
	}
}
