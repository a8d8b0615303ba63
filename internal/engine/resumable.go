package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// ErrResume says that a job cannot be resumed as asked. Nothing was begun.
var ErrResume = errors.New("refused to resume")

// ErrFork says that no job can be forked as asked. Nothing was begun.
var ErrFork = errors.New("refused to fork")

// Reader reads jobs and their journals.
type Reader interface {
	store.Reader

	// Job is that of store.Client.
	Job(ctx context.Context, id journal.JobID) (*store.JobView, error)
	// FindJob is that of store.Client.
	FindJob(ctx context.Context, key string) (journal.JobID, error)
}

// PlanResume reads what a closed job leaves to the one that resumes it, and completes from: the
// activity to go on from, unless it names one, and the children to wait for again. The start has
// the key of the job, also with an error, as far as it is known. Errors: ErrResume, which says what
// to do, store.ErrNotFound, or the store's.
func PlanResume(
	ctx context.Context, r Reader, flows *Flows, id journal.JobID, from *journal.From) (in store.Start, err error,
) {
	left, err := inspect.RemainsOf(ctx, r, id, resumable)
	job := &left.Job
	in = store.Start{Flow: job.Flow, Key: job.Key, Tags: job.Tags, Trace: job.Trace}
	if err != nil {
		return in, err
	}
	if err := sourced(ctx, r, job.From); err != nil {
		return in, err
	}
	f, err := flows.Get(ctx, job.Flow)
	if err != nil {
		return in, err
	}
	from.Job, in.Trigger, in.Input = id, f.Trigger().Name, left.Input
	if err := left.Choose(f, from); err != nil {
		return in, fmt.Errorf("%w: %w", ErrResume, err)
	}
	from.Children, err = completed(ctx, r, left.Children())
	return in, err
}

// sourced returns ErrResume if the job from which a fork takes results over has expired.
func sourced(ctx context.Context, r Reader, from *journal.From) error {
	if from == nil || from.Fork == nil {
		return nil
	}
	source, err := r.Job(ctx, from.Fork.Job)
	if errors.Is(err, store.ErrNotFound) || err == nil && source.State == journal.JobExpired {
		return fmt.Errorf("%w: job %s, from which it takes results over, has expired: start a new job", ErrResume, from.Fork.Job)
	}
	return err
}

// resumable returns ErrResume if the header of a job shows that it cannot be resumed.
func resumable(s *store.Stored) error {
	why := ""
	switch job := &s.Job; {
	case job.Flow.Name == flow.UndoName:
		why = "it runs the compensations of another job: decide on its dead letter"
	case job.State == journal.JobOpen:
		why = "it is open: `quipu why` says what it waits for"
	case job.State == journal.JobQuarantined:
		why = "it is quarantined: `quipu fsck` says what differs from its journal"
	case job.State == journal.JobCompleted:
		why = "it has completed: there is nothing left to do"
	case s.TasksAt == 0:
		why = "it is just being closed: try again in a moment"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s", ErrResume, why)
}

// completed keeps the children that have begun. It returns ErrResume if one of them has not completed
// since.
func completed(ctx context.Context, r Reader, children []journal.FromChild) ([]journal.FromChild, error) {
	var all []journal.FromChild
	for _, x := range children {
		child, err := r.Job(ctx, x.Job)
		if errors.Is(err, store.ErrNotFound) {
			continue // its start was cancelled
		}
		if err != nil {
			return nil, err
		}
		last, err := r.FindJob(ctx, child.Key)
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("%w: %s waited for job %q, which has expired: what it did is not known any more", ErrResume, x.Activity, child.Key)
		}
		if err != nil {
			return nil, err
		}
		v, err := r.Job(ctx, last)
		switch {
		case err != nil:
			return nil, err
		case v.State == journal.JobCompleted && v.Ended:
			all = append(all, x)
		case v.State == journal.JobFailed || v.State == journal.JobInterrupted:
			return nil, fmt.Errorf("%w: %s waited for job %q, which %s: resume that first (quipu resume %q), and this one when it has completed", ErrResume, x.Activity, child.Key, howEnded(v.State), child.Key)
		default:
			return nil, fmt.Errorf("%w: %s waited for job %q, which is %s: wait for its end, or interrupt it", ErrResume, x.Activity, child.Key, v.State)
		}
	}
	if len(all) > journal.MaxFromChildren {
		return nil, fmt.Errorf("%w: it waited for %d jobs that have completed since, the limit is %d", ErrResume, len(all), journal.MaxFromChildren)
	}
	return all, nil
}

func howEnded(s journal.JobState) string {
	if s == journal.JobFailed {
		return "failed"
	}
	return "was interrupted"
}
