package quipu

import (
	"context"
	"encoding/json"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

func init() {
	below.Open = func(ctx context.Context, cfg any, how below.Mode) (any, error) {
		return open(ctx, cfg.(Config), how)
	}
	below.Of = func(runtime any) *postgres.Store { return runtime.(*Runtime).store }
	below.Witness = func(ctx context.Context, runtime any) (newest store.Mark, foreign, err error) {
		return runtime.(*Runtime).proc.Witness(ctx)
	}
	below.Observer = func(runtime any) observer.Observer { return runtime.(*Runtime).cfg.Observer }
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
		Job: Job{ID: v.ID, Key: v.Key}, Generation: v.Generation, Flow: v.Flow.Name, Version: v.Flow.Version, State: v.State, Tags: v.Tags,
		Started: moment(v.Started), Closed: moment(v.Closed), Open: v.Semaphore, Entries: v.Head.Seq,
	}
}

func info(v *store.JobView) *JobInfo {
	out := &JobInfo{
		JobSummary: summary(&v.JobSummary), Ended: v.Ended, Code: v.Code, Error: v.Error, Output: v.Output, ExpiresAt: moment(v.ExpiresAt),
		Trace: v.Trace,
	}
	if p := v.Parent; p != nil {
		out.Parent = &Parent{Job: Job{ID: p.Job}, Activity: p.Activity, Address: p.DAD}
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
			Activity: i.Key.Activity, Address: string(i.Key.DAD), Ledger: i.Ledger.String(), Code: i.Code, Child: i.Child,
		})
	}
	for i := range v.Rows {
		r := &v.Rows[i]
		out.Messages = append(out.Messages, Message{
			ID: r.GUID, Kind: r.Kind, Activity: r.Activity, Address: string(r.DAD), Topic: r.Topic, Element: r.Element,
			Turn: r.Turn, Attempt: r.Attempt, Sent: moment(r.PublishedAt), Due: moment(r.NextAt), Held: Held(r.Held), Holder: r.Holder, Lost: max(0, r.Lost()),
		})
	}
	for i := range v.Waits {
		w := &v.Waits[i]
		out.Waits = append(out.Waits, Wait{
			Activity: w.Activity, Address: string(w.DAD), Topic: w.Topic, Key: w.Key, Since: moment(w.Since), Repeat: w.Repeat, Signals: w.Count,
		})
	}
	for i := range v.Dead {
		out.DeadLetters = append(out.DeadLetters, deadLetter(&v.Dead[i]))
	}
	return out
}
