package quipu

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
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

// Children lists the jobs that the job waits for, by address: ErrNotFound. A child that has begun has a
// State; Wait and Job accept a Job with its ID.
func (rt *Runtime) Children(ctx context.Context, job Job) ([]view.Child, error) {
	v, err := rt.Job(ctx, job)
	if err != nil {
		return nil, err
	}
	ids := make([]journal.JobID, len(v.Children))
	for i := range v.Children {
		ids[i] = v.Children[i].ID
	}
	outcomes, err := rt.store.Outcomes(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range v.Children {
		if o, begun := outcomes[ids[i]]; begun {
			v.Children[i].Key, v.Children[i].State, v.Children[i].Ended = o.Key, o.State, o.Over()
		}
	}
	return v.Children, nil
}

// Job reads what the tables have of a job: ErrNotFound.
func (rt *Runtime) Job(ctx context.Context, job Job) (*view.Job, error) {
	job, err := rt.known(ctx, job)
	if err != nil {
		return nil, err
	}
	return rt.reader.Job(ctx, job.ID, inspect.Want{})
}

// Inspect is Job with more of it, or as it stood at an entry of its journal. Errors: ErrNotFound; where
// something is wanted that only the journal has, also ErrTombstone, or one that says that the job has
// over MaxHistory entries.
func (rt *Runtime) Inspect(ctx context.Context, job Job, want view.Want) (*view.Job, error) {
	job, err := rt.known(ctx, job)
	if err != nil {
		return nil, err
	}
	return rt.reader.Job(ctx, job.ID, inspect.Want{Want: want, AnySize: true})
}

// moment converts a time of the database; never is the zero time.
func moment(t collation.Micros) time.Time {
	if t == collation.Never {
		return time.Time{}
	}
	return time.UnixMicro(int64(t))
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
	Jobs []view.Summary
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
	page := JobPage{Jobs: make([]view.Summary, len(found.Jobs)), Next: found.Next, Searched: moment(found.Searched)}
	for i := range found.Jobs {
		page.Jobs[i] = inspect.Summarize(&found.Jobs[i])
	}
	return page, nil
}

// AllJobs yields the jobs that Jobs lists page by page, from Before on if there is one.
// Limit is the size of a page. The pages are read one after another: a job that starts meanwhile
// is not yielded, and one that ends may be yielded as open. After an error it ends.
func (rt *Runtime) AllJobs(ctx context.Context, f JobFilter) iter.Seq2[view.Summary, error] {
	return func(yield func(view.Summary, error) bool) {
		if f.Limit <= 0 {
			f.Limit = store.MaxPage
		}
		for {
			page, err := rt.Jobs(ctx, f)
			if err != nil {
				yield(view.Summary{}, err)
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

// History returns the events of a job in the order of time: inputs and outputs of activities,
// attempts, effects, signals, children. Errors: ErrNotFound, ErrTombstone, or one that says that
// the job has over MaxHistory entries.
func (rt *Runtime) History(ctx context.Context, job Job) ([]view.Event, error) {
	job, err := rt.known(ctx, job)
	if err != nil {
		return nil, err
	}
	v, err := rt.reader.Job(ctx, job.ID, inspect.Want{Want: view.Want{Events: true}, AnySize: true})
	if err != nil {
		return nil, err
	}
	return v.Events, nil
}
