package quipu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Find returns the job that has the key.
func (rt *Runtime) Find(ctx context.Context, key string) (Job, error) {
	key = rt.proc.Kept(key)
	id, err := rt.store.FindJob(ctx, key)
	if err != nil {
		return Job{}, fmt.Errorf("job %q: %w", key, err)
	}
	return Job{ID: id, Key: key}, nil
}

// known returns the job with its ID; it looks up a job that has only a key. Errors: ErrNotFound,
// also errNotBegun; ErrRefused.
func (rt *Runtime) known(ctx context.Context, job Job) (Job, error) {
	if !job.ID.IsZero() || job.Key == "" {
		job.Key = rt.proc.Kept(job.Key)
		return job, nil
	}
	if !job.Asked.IsZero() {
		open, err := rt.committer.Asked(ctx, job.Asked)
		if open {
			err = errNotBegun
		}
		if err != nil {
			return Job{}, fmt.Errorf("job %q: %w", rt.proc.Kept(job.Key), err)
		}
	}
	return rt.Find(ctx, job.Key)
}

// errNotBegun says that a client has asked for the job, and no engine has answered.
var errNotBegun = fmt.Errorf("%w: no engine has begun it yet", ErrNotFound)

// begun is known; it waits until the job of a client has begun.
func (rt *Runtime) begun(ctx context.Context, job Job) (Job, error) {
	for n := 0; ; n++ {
		found, err := rt.known(ctx, job)
		if !errors.Is(err, errNotBegun) {
			return found, err
		}
		select {
		case <-ctx.Done():
			return Job{}, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(backoff.Delay(n, beginLook, engine.DefaultLook, nil)):
		}
	}
}

// beginLook is the pause before begun looks again; it doubles.
const beginLook = 5 * time.Millisecond

// Journal yields the job's entries: the main chain first, then the effect
// chains, each by seq.
func (rt *Runtime) Journal(ctx context.Context, job Job) iter.Seq2[*journal.Entry, error] {
	return func(yield func(*journal.Entry, error) bool) {
		job, err := rt.known(ctx, job)
		if err != nil {
			yield(nil, err)
			return
		}
		inspect.Journal(ctx, rt.store, job.ID)(yield)
	}
}

// Child is a job that an activity of another job waits for.
type Child struct {
	Activity string // the await
	Address  string
	ID       journal.JobID
	// Turn counts the children that the await has started. Attempt rises with each that failed.
	// Both begin at 1.
	Turn, Attempt int
	// Begun says that the child's inception is committed; Ended that it has ended or is
	// quarantined.
	Begun, Ended bool
}

// Children lists the jobs that the job waits for, by address: ErrNotFound. Wait and Job accept
// a Job with such an ID.
func (rt *Runtime) Children(ctx context.Context, job Job) ([]Child, error) {
	job, err := rt.known(ctx, job)
	if err != nil {
		return nil, err
	}
	v, err := rt.store.Job(ctx, job.ID)
	if err != nil {
		return nil, err
	}
	var out []Child
	var ids []journal.JobID
	for i := range v.Instances {
		if in := &v.Instances[i]; !in.Child.IsZero() {
			out = append(out, Child{
				Activity: in.Key.Activity, Address: string(in.Key.DAD), ID: in.Child, Turn: in.Turn,
				Attempt: in.Attempt,
			})
			ids = append(ids, in.Child)
		}
	}
	ended, err := rt.store.Ended(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Ended, out[i].Begun = ended[out[i].ID]
	}
	return out, nil
}

// JobSummary is one line of a list of jobs. A time that has not come is zero.
type JobSummary struct {
	Job           Job
	Generation    int64 // how often the key has been used, from 1
	Flow, Version string
	State         journal.JobState
	Tags          []string
	Started       time.Time
	Closed        time.Time
	Open          int64 // open obligations: at 0 the job closes
	Entries       int64 // entries of its main chain
}

// JobInfo is the state of one job.
type JobInfo struct {
	JobSummary
	Ended     bool // closed, and its completion tasks are done
	Code      int  // 200, or that of its error; 0 while open
	Error     *journal.Failure
	Output    json.RawMessage // set once it has Ended
	ExpiresAt time.Time       // when it is removed; zero if it is kept for good or not closed
	Trace     string          // W3C traceparent, or ""
	// Parent is the activity that started this job by an await or a function; nil for none.
	Parent *Parent
	// Resumes is the job that this one continues, ResumedBy the one that continues it. Both have
	// the same key; zero for none.
	Resumes, ResumedBy journal.JobID
	// ForkOf is the job from one of whose entries this one goes on; zero: it is no fork.
	ForkOf journal.JobID
	// Activities are the instances that the job has reached, one for each pass.
	Activities []Instance
	// Messages are the open ones: sent, due, due later, or held.
	Messages []Message
	// Waits are the open waits for signals.
	Waits []Wait
	// DeadLetters are all dead letters of the job, the oldest first.
	DeadLetters []DeadLetter
}

// Parent is the activity of another job that started a job.
type Parent struct {
	Job               Job
	Activity, Address string
	Awaited           bool // the activity waits for the job's end
}

// Instance is one pass of an activity.
type Instance struct {
	Activity, Address string
	Ledger            string // its 15 digits (1.2)
	Code              int    // of its result; 0 without one
	Child             journal.JobID
}

// Held says why a message is held, and not sent.
type Held string

// Why messages are held.
const (
	HeldParked   Held = collation.HeldParked   // a person has to decide (E10)
	HeldStuck    Held = collation.HeldStuck    // it cannot be handled; a person has to decide
	HeldParallel Held = collation.HeldParallel // an element that waits for its turn
)

// Message is an open message of a job.
type Message struct {
	ID                journal.GUID
	Kind              journal.MessageKind
	Activity, Address string
	Topic             string // of a request
	Element           int    // its index in the list, under `each`
	Turn, Attempt     int
	// Lost is how many runs of the attempt ended without an answer, with their process or its
	// connection (E9).
	Lost   int
	Sent   time.Time // last sent
	Due    time.Time // when the sweeper looks at it next; zero if it does not
	Held   Held      // why it is held, or ""
	Holder string    // the handler run that has it, or ""
}

// Wait is an open wait for a signal.
type Wait struct {
	Activity, Address string
	Topic, Key        string
	Since             time.Time
	Repeat            bool
	Signals           int // signals so far, if it repeats
}

// Job reads the state of a job: ErrNotFound.
func (rt *Runtime) Job(ctx context.Context, job Job) (*JobInfo, error) {
	job, err := rt.known(ctx, job)
	if err != nil {
		return nil, err
	}
	v, err := rt.store.Job(ctx, job.ID)
	if err != nil {
		return nil, err
	}
	return info(v), nil
}

// moment converts a time of the database; never is the zero time.
func moment(t collation.Micros) time.Time {
	if t == collation.Never {
		return time.Time{}
	}
	return time.UnixMicro(int64(t))
}

func summary(v *store.JobSummary) JobSummary {
	return JobSummary{
		Job: Job{ID: v.ID, Key: v.Key}, Generation: v.Generation, Flow: v.Flow.Name, Version: v.Flow.Version,
		State: v.State, Tags: v.Tags,
		Started: moment(v.Started), Closed: moment(v.Closed), Open: v.Semaphore, Entries: v.Head.Seq,
	}
}

func info(v *store.JobView) *JobInfo {
	out := &JobInfo{
		JobSummary: summary(&v.JobSummary), Ended: v.Ended, Code: v.Code, Error: v.Error, Output: v.Output,
		ExpiresAt: moment(v.ExpiresAt),
		Trace:     v.Trace,
	}
	if p := v.Parent; p != nil {
		out.Parent = &Parent{Job: Job{ID: p.Job}, Activity: p.Activity, Address: p.DAD, Awaited: p.Awaited}
	}
	switch from := v.From; {
	case from == nil:
	case from.Forks():
		out.ForkOf = from.Job
	default:
		out.Resumes = from.Job
	}
	out.ResumedBy = v.Next
	for _, i := range v.Instances {
		out.Activities = append(out.Activities, Instance{
			Activity: i.Key.Activity, Address: string(i.Key.DAD), Ledger: i.Ledger.String(), Code: i.Code,
			Child: i.Child,
		})
	}
	for i := range v.Rows {
		r := &v.Rows[i]
		out.Messages = append(out.Messages, Message{
			ID: r.GUID, Kind: r.Kind, Activity: r.Activity, Address: string(r.DAD), Topic: r.Topic, Element: r.Element,
			Turn: r.Turn, Attempt: r.Attempt, Sent: moment(r.PublishedAt), Due: moment(r.NextAt), Held: Held(r.Held),
			Holder: r.Holder, Lost: max(0, r.Lost()),
		})
	}
	for i := range v.Waits {
		w := &v.Waits[i]
		out.Waits = append(out.Waits, Wait{
			Activity: w.Activity, Address: string(w.DAD), Topic: w.Topic, Key: w.Key, Since: moment(w.Since),
			Repeat: w.Repeat, Signals: w.Count,
		})
	}
	for i := range v.Dead {
		out.DeadLetters = append(out.DeadLetters, deadLetter(&v.Dead[i]))
	}
	return out
}

// MaxCounted bounds the jobs that CountJobs looks at.
const MaxCounted = store.MaxCounted

// JobFilter selects jobs. A zero field does not filter.
//
// From and To, Tags and Parent have an index, and States without completed and expired, alone or
// with a Flow: only jobs that fit them are read. Of Tags all jobs are read for each page, so they
// are for what few jobs have. The other fields are compared with each of these jobs, from the
// newest on, until a page is full. So give a time range where few jobs fit: without one, a filter
// that fits nothing reads every job of the space, 20 000 in each statement.
type JobFilter struct {
	States  []journal.JobState // the job is in one of them
	Flow    string
	Version string // of the flow
	Prefix  string // of the key; where keys are private, a whole digest, with which derived keys of children begin
	// Waits is what the job waits for: topic (a worker), signal, timer (the end of a sleep), child
	// or person; topic and signal also with a name, as in "topic:payments.charge". Only open jobs
	// wait.
	Waits    string
	Tags     []string      // the job has all of them
	Parent   journal.JobID // the job that started it, by an await or a function
	From, To time.Time     // it started at From or later, and before To
	Before   string        // the Next of the previous page
	Limit    int           // defaults to 100, at most 1 000
}

func (f *JobFilter) store() store.JobFilter {
	return store.JobFilter{
		States: f.States, Flow: f.Flow, Version: f.Version, Prefix: f.Prefix, Waits: f.Waits, Tags: f.Tags,
		Parent: f.Parent,
		From:   instant(f.From), To: instant(f.To), Before: f.Before, Limit: f.Limit,
	}
}

// checkPrefix refuses the beginning of a key where the space has digests of keys alone (S15).
func (rt *Runtime) checkPrefix(prefix string) error {
	if rt.proc.Kept(prefix) == prefix {
		return nil
	}
	return fmt.Errorf("%w: prefix %.80q: the space has digests of keys (sha256:…), which say nothing of how a key begins: give the whole key to Find",
		ErrKey, prefix)
}

// instant converts a time for the database; the zero time is no time.
func instant(t time.Time) collation.Micros {
	if t.IsZero() {
		return 0
	}
	return collation.Micros(t.UnixMicro())
}

// JobPage is a page of a list of jobs.
type JobPage struct {
	Jobs []JobSummary
	Next string // JobFilter.Before of the next page; "": there is none
	// Searched is set if the page ends early: no more jobs were looked at than one statement does.
	// All that started later were compared with the filter. Next leads on.
	Searched time.Time
}

// Jobs lists a page of jobs, newest first, without those that another has resumed. An expired job is
// only a tombstone. A page ends where it is full, and where 20 000 jobs were compared with a filter
// without an index, or 5 000 were asked what they wait for (O7); AllJobs goes on by itself.
// ErrRejected says that Before is no Next, Limit too high or Waits none of its words; ErrKey, that
// the Prefix begins a key that is private. Two starts by different processes within 50 ms may be in
// either order (J5).
func (rt *Runtime) Jobs(ctx context.Context, f JobFilter) (JobPage, error) {
	if err := rt.checkPrefix(f.Prefix); err != nil {
		return JobPage{}, err
	}
	found, err := rt.store.Jobs(ctx, f.store())
	if err != nil {
		return JobPage{}, err
	}
	page := JobPage{Jobs: make([]JobSummary, len(found.Jobs)), Next: found.Next, Searched: moment(found.Searched)}
	for i := range found.Jobs {
		page.Jobs[i] = summary(&found.Jobs[i])
	}
	return page, nil
}

// AllJobs yields the jobs that Jobs lists page by page, from Before on if there is one.
// Limit is the size of a page. The pages are read one after another: a job that starts meanwhile
// is not yielded, and one that ends may be yielded as open. After an error it ends.
func (rt *Runtime) AllJobs(ctx context.Context, f JobFilter) iter.Seq2[JobSummary, error] {
	return func(yield func(JobSummary, error) bool) {
		if f.Limit <= 0 {
			f.Limit = store.MaxPage
		}
		for {
			page, err := rt.Jobs(ctx, f)
			if err != nil {
				yield(JobSummary{}, err)
				return
			}
			for i := range page.Jobs {
				if !yield(page.Jobs[i], nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			f.Before = page.Next
		}
	}
}

// JobCounts are the numbers of jobs that a filter selects.
type JobCounts struct {
	ByState map[journal.JobState]int64 // states without a job are not there
	// Looked is how many jobs were compared with the filter: those of its time range, with its Tags
	// and of its Parent.
	Looked int64
	// Cut says that there are more than MaxCounted of them. Only the newest were looked at (with
	// Tags or a Parent: any), so the numbers are too low.
	Cut bool
}

// CountJobs counts the jobs that a filter selects; Before and Limit do not count. It reads each job
// of the time range, with the Tags and of the Parent, at most MaxCounted: so its cost grows with
// that number, not with the number that it counts. A million jobs take a second or two of one
// core of the database.
func (rt *Runtime) CountJobs(ctx context.Context, f JobFilter) (JobCounts, error) {
	if err := rt.checkPrefix(f.Prefix); err != nil {
		return JobCounts{}, err
	}
	counts, looked, err := rt.store.CountJobs(ctx, f.store())
	return JobCounts{ByState: counts, Looked: looked, Cut: looked >= MaxCounted}, err
}

// MaxHistory bounds the entries of a job whose History can be read.
const MaxHistory = inspect.MaxHistory

// Event is one thing that happened in a job.
type Event struct {
	Time time.Time // by the database's clock
	// Kind is started, sent, done, failed, attempt, waits, woke, signal, child, effect, parked,
	// operator, late, closed or other.
	Kind string
	// Activity and Address name the instance; empty for the job as a whole.
	Activity, Address string
	Pass              int    // which pass of a loop or of a repeating hook it is, from 1
	Element           int    // the place in the list of an `each`, from 0; -1 for none
	Text              string // what happened, in a few words without the values below
	Attempt           int    // the attempt that the event is about, from 1; 0 for none
	Code              int    // of an end; 0 otherwise
	// Input and Output are canonical; nil where there is none, or it is not known any more.
	Input, Output json.RawMessage
	Error         *journal.Failure
	Job           journal.JobID // another job that the event is about: a child, a parent, a target
	Due           time.Time     // when it goes on without any event; zero if it does not
	// Waited is how long one attempt of a request waited for a worker, and Ran how long the worker
	// ran; 0: not known. Other waits only have Waited.
	Waited, Ran time.Duration
	// Chain and Seq name the entry of the event; Chain is zero for the main chain.
	Chain journal.GUID
	Seq   int64
}

// History returns the events of a job in the order of time: inputs and outputs of activities,
// attempts, effects, signals, children. Errors: ErrNotFound, ErrTombstone, or one that says that
// the job has over MaxHistory entries.
func (rt *Runtime) History(ctx context.Context, job Job) ([]Event, error) {
	job, err := rt.known(ctx, job)
	if err != nil {
		return nil, err
	}
	all, err := inspect.History(ctx, rt.store, job.ID)
	if err != nil {
		return nil, err
	}
	out := make([]Event, len(all))
	for i := range all {
		e := &all[i]
		out[i] = Event{
			Time: e.Time, Kind: string(e.Kind), Activity: e.Activity, Address: e.Address, Pass: e.Pass,
			Element: e.Element, Text: e.Text,
			Attempt: e.Attempt, Code: e.Code, Input: known(e.Input), Output: known(e.Output), Error: e.Error,
			Job: e.Job, Due: e.Due,
			Waited: e.Waited, Ran: e.Ran, Chain: e.Chain, Seq: e.Seq,
		}
	}
	return out, nil
}

// known is what is known of a value.
func known(v *history.Value) json.RawMessage {
	if v == nil {
		return nil
	}
	return v.JSON
}
