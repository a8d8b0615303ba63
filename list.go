package quipu

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

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
		States: f.States, Flow: f.Flow, Version: f.Version, Prefix: f.Prefix, Waits: f.Waits, Tags: f.Tags, Parent: f.Parent,
		From: instant(f.From), To: instant(f.To), Before: f.Before, Limit: f.Limit,
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
