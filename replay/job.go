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
	Parent *journal.Parent // the await, or the durable function, that started the job; nil for none
	From   *journal.From   // what the job resumes; nil for nothing
	Next   journal.JobID   // the job that resumes this one; zero for none
	State  journal.JobState
	// Semaphore is the count of open obligations as the entries moved it;
	// Obligations lists them, recounted from what was dispatched and ended, by the
	// message that made each: a start, a Leg1, or a cycle's (C13).
	Semaphore   int64
	Obligations map[journal.GUID]Obligation
	// At is the last entry of the main chain that was applied; Chains has the
	// same for the chains of effects, by request.
	At     journal.Head
	Chains map[journal.GUID]journal.Head

	Instances map[collation.InstanceKey]*Instance
	// Passes are the results that do not stand with their instance: those of
	// passes with an index over 0, at their resolved address (C6), and of elements,
	// under the name activity[index].
	Passes   map[collation.InstanceKey]*Recorded
	Receipts map[journal.GUID]*Receipt
	Rows     map[journal.GUID]*Row   // open ones of this job only
	Waits    map[journal.GUID]*Wait  // open ones only
	Children map[journal.GUID]*Child // started, and not answered yet; by their start
	Signals  map[Consumed]int64      // signals that waits consumed, and the entry that did
	// Pauses are what durable functions wait and waited for, by their wake-up, their
	// wait, or the start of their child (E12).
	Pauses map[journal.GUID]*Pause
	// Undos are the requests whose compensations a job was ordered for, and the
	// entry that did (3.5).
	Undos   map[journal.GUID]int64
	Effects map[journal.Digest]*Effect
	// Left counts the messages that were sent to other jobs and to waits: what
	// became of them is not told by this journal.
	Left int

	Started  int64 // database time, µs
	Ended    int64 // of the closing entry, µs; 0 while open
	Closer   journal.GUID
	ClosedAt int64 // seq of the closing entry; 0 while open
	Tasks    bool  // the completion tasks are done
	Close    Outcome

	outputs bool
	wakers  map[journal.GUID]journal.GUID // the pause that a message wakes
}

// Outcome is how a job ended.
type Outcome struct {
	State journal.JobState
	Code  int
}

// Option changes what a Job keeps.
type Option func(*Job)

// KeepOutputs keeps the output of every result, canonical. Memory then grows
// with them.
func KeepOutputs(j *Job) { j.outputs = true }

// New begins the replay of a job, before its first entry.
func New(h Header, options ...Option) *Job {
	j := &Job{
		Header:      h,
		Obligations: make(map[journal.GUID]Obligation),
		Chains:      make(map[journal.GUID]journal.Head),
		Instances:   make(map[collation.InstanceKey]*Instance),
		Passes:      make(map[collation.InstanceKey]*Recorded),
		Receipts:    make(map[journal.GUID]*Receipt),
		Rows:        make(map[journal.GUID]*Row),
		Waits:       make(map[journal.GUID]*Wait),
		Children:    make(map[journal.GUID]*Child),
		Signals:     make(map[Consumed]int64),
		Effects:     make(map[journal.Digest]*Effect),
		Pauses:      make(map[journal.GUID]*Pause),
		Undos:       make(map[journal.GUID]int64),
		wakers:      make(map[journal.GUID]journal.GUID),
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
	if rec.Job.IsZero() {
		rec.Job = j.Header.Job
	}
	e, err := journal.DecodeTrusted(rec)
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
