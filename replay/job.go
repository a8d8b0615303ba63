package replay

import (
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Header names the job to replay, and what else is known before its first entry. Every hash
// covers Space, Job and Generation (J9).
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
	Parent *journal.Parent // the await, or the durable function, that started the job; nil: none
	From   *journal.From   // what the job resumes; nil: nothing
	Next   journal.JobID   // the job that resumes this one; zero: none
	State  journal.JobState
	// Semaphore is the number of open obligations by the entries. Obligations has them as
	// recounted from dispatches and ends, by the message that made each: a start, a Leg1, a
	// cycle's (C13).
	Semaphore   int64
	Obligations map[journal.GUID]Obligation
	// At is the last applied entry of the main chain; Chains has the same for the effect chains,
	// by request.
	At     journal.Head
	Chains map[journal.GUID]journal.Head

	Instances map[collation.InstanceKey]*Instance
	// Passes are the results that are not recorded with their instance: those of passes with an
	// index over 0, at their resolved address (C6), and of elements, under activity[index].
	Passes   map[collation.InstanceKey]*Recorded
	Receipts map[journal.GUID]*Receipt
	Rows     map[journal.GUID]*Row   // open ones of this job only
	Waits    map[journal.GUID]*Wait  // open ones only
	Children map[journal.GUID]*Child // started and not answered yet; by the GUID of their start
	Signals  map[Consumed]int64      // consumed signals, and the entry that consumed each
	// Pauses are what durable functions wait or waited for (E12), by the GUID of the wake-up,
	// the wait, or the child's start.
	Pauses map[journal.GUID]*Pause
	// Undos are the requests for which a job with compensations was ordered, and the entry that
	// ordered it (3.5).
	Undos   map[journal.GUID]int64
	Effects map[journal.Digest]*Effect
	// Left counts the messages sent to other jobs and to waits. This journal does not tell what
	// became of them.
	Left int

	Started  int64 // database time, µs
	Ended    int64 // of the closing entry, µs; 0 while open
	Closer   journal.GUID
	ClosedAt int64 // seq of the closing entry; 0 while open
	TasksAt  int64 // seq of the entry with which the completion tasks were done; 0 before
	Close    Outcome

	outputs bool
	wakers  map[journal.GUID]journal.GUID // which pause a message wakes
	// released are the turns in which the end of an effect released a parked request (E4).
	released map[journal.GUID]int
}

// Outcome is how a job ended.
type Outcome struct {
	State journal.JobState
	Code  int
}

// Option changes what a Job keeps.
type Option func(*Job)

// KeepOutputs keeps the canonical output of every result. Memory then grows with the outputs.
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
		released:    make(map[journal.GUID]int),
	}
	for _, o := range options {
		o(j)
	}
	return j
}

// Apply folds the next entry of its chain; entries of the main chain and of effect chains may
// be mixed in any order. It trusts hashes and digits, which Verify checks. It refuses a body
// that it cannot read, an entry of another job, and a seq that is not the next.
func (j *Job) Apply(rec journal.Record) error {
	if rec.Job.IsZero() {
		rec.Job = j.Header.Job
	}
	e, err := journal.DecodeTrusted(rec)
	if err != nil {
		return fmt.Errorf("entry %d of chain %s: %w", rec.Seq, rec.Chain, err)
	}
	return j.ApplyEntry(e, rec.Hash)
}

// ApplyEntry is Apply for an entry that was decoded before; hash is that of its record.
func (j *Job) ApplyEntry(e *journal.Entry, hash journal.Digest) error {
	last := j.At.Seq
	if !e.Chain.IsZero() {
		last = j.Chains[e.Chain].Seq
	}
	if e.Job != j.Header.Job || e.Seq != last+1 {
		return fmt.Errorf("entry %d of chain %s of job %s does not follow entry %d of job %s",
			e.Seq, e.Chain, e.Job, last, j.Header.Job)
	}
	j.fold(e, j.read(e), hash)
	return nil
}

// instance returns the instance of the key, and makes it if it is new.
func (j *Job) instance(key collation.InstanceKey) *Instance {
	i := j.Instances[key]
	if i == nil {
		i = &Instance{}
		j.Instances[key] = i
	}
	return i
}
