package replay

import (
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Header names the job whose entries are replayed, and what else is known of
// it before the first entry is read. Space, Job and Generation are bound by
// every hash (J9).
type Header struct {
	Space      string
	Job        journal.JobID
	Key        string // "" not known
	Generation int64
	Head       journal.Head   // of the main chain, as stored; zero: not known
	Flow       journal.Digest // zero: not known
}

// Job is the state of one job, rebuilt from its entries (J10). Its fields are
// for reading; Apply changes them. It is not safe for concurrent use.
type Job struct {
	Header Header
	Flow   journal.FlowRef
	State  journal.JobState
	// Semaphore is the count of open obligations as the entries moved it;
	// Obligations lists them, recounted from what was dispatched and ended: the
	// instance, and the entry that made it an obligation (C13).
	Semaphore   int64
	Obligations map[collation.InstanceKey]int64
	// At is the last entry of the main chain that was applied; Chains has the
	// same for the chains of effects, by request.
	At     journal.Head
	Chains map[journal.GUID]journal.Head

	Instances map[collation.InstanceKey]*Instance
	Receipts  map[journal.GUID]*Receipt
	Rows      map[journal.GUID]*Row // open ones only
	Effects   map[journal.Digest]*Effect

	Started  int64 // database time, µs
	Ended    int64 // of the closing entry, µs; 0 while open
	Closer   journal.GUID
	ClosedAt int64 // seq of the closing entry; 0 while open
	Tasks    bool  // the completion tasks are done
	Close    Outcome

	outputs bool
}

// Outcome is how a job ended.
type Outcome struct {
	State journal.JobState
	Code  int
}

// Instance is one instance: its ledger, the seq of the entry that holds its
// result (0: none yet), the result's code, and, with KeepOutputs, its output.
type Instance struct {
	Ledger    collation.ActivityLedger
	ResultSeq int64
	Code      int
	Output    []byte
}

// Receipt is one handled message that leaves a receipt: its ledger, which has
// its ordinal and steps, its verdict, the row that licensed it, and what it
// answered.
type Receipt struct {
	Ledger  collation.GUIDLedger
	Verdict journal.Verdict
	Seq     int64 // of the entry that accepted it
	Row     journal.GUID
	Kind    journal.ResponseKind // "" for a message that brings no response
	Code    int

	output []byte // until step 1, with KeepOutputs
}

// Row is an open dispatch row, as far as entries tell: publications, leases
// and due times of first publications are no matter of the journal.
type Row struct {
	Kind     journal.MessageKind
	Activity string
	DAD      collation.DAD
	Topic    string
	Turn     int
	Try      int
	NextAt   int64 // µs; as last set by an entry that updated the row
	Held     string
	Origin   int64 // seq of the entry that dispatched it
}

// EffectState is how far an effect came.
type EffectState string

// The states of an effect (E5).
const (
	EffectStarted   EffectState = "started"
	EffectCompleted EffectState = "completed"
	EffectNotDone   EffectState = "not_done"
)

// Effect is one effect key: the cached outcome, by the digest of its result.
type Effect struct {
	Request journal.GUID
	Name    string
	Class   string
	N       int
	State   EffectState
	Result  journal.Digest // of the result, or of its error; zero until then
}

// Option changes what a Job keeps.
type Option func(*Job)

// KeepOutputs keeps the output of every instance, canonical. Memory then grows
// with them.
func KeepOutputs(j *Job) { j.outputs = true }

// New begins the replay of a job, before its first entry.
func New(h Header, options ...Option) *Job {
	j := &Job{
		Header:      h,
		Obligations: make(map[collation.InstanceKey]int64),
		Chains:      make(map[journal.GUID]journal.Head),
		Instances:   make(map[collation.InstanceKey]*Instance),
		Receipts:    make(map[journal.GUID]*Receipt),
		Rows:        make(map[journal.GUID]*Row),
		Effects:     make(map[journal.Digest]*Effect),
	}
	for _, o := range options {
		o(j)
	}
	return j
}

// Apply folds the next entry of its chain; the main chain may be interleaved
// with chains of effects in any way. It trusts hashes and digits, which Verify
// checks; it refuses a body that it cannot read, an entry of another job, and a
// seq that is not the next.
func (j *Job) Apply(rec journal.Record) error {
	e, err := journal.DecodeTrusted(rec.Body)
	if err != nil {
		return fmt.Errorf("entry %d of chain %s: %w", rec.Seq, rec.Chain, err)
	}
	last := j.At.Seq
	if !rec.Chain.IsZero() {
		last = j.Chains[rec.Chain].Seq
	}
	if e.Job != j.Header.Job || e.Chain != rec.Chain || e.Seq != last+1 {
		return fmt.Errorf("entry %d of chain %s of job %s does not follow entry %d of job %s",
			e.Seq, e.Chain, e.Job, last, j.Header.Job)
	}
	j.fold(e, j.read(e), rec.Hash)
	return nil
}

// instance returns the instance of the key, making it if it is new.
func (j *Job) instance(key collation.InstanceKey) *Instance {
	i := j.Instances[key]
	if i == nil {
		i = &Instance{}
		j.Instances[key] = i
	}
	return i
}
