package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
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
	v, err := r.Job(ctx, id)
	if err != nil {
		return in, err
	}
	in = store.Start{Flow: v.Flow, Key: v.Key, Tags: v.Tags, Trace: v.Trace}
	if err := resumable(v); err != nil {
		return in, fmt.Errorf("%w: %w", ErrResume, err)
	}
	if err := sourced(ctx, r, v.From); err != nil {
		return in, err
	}
	f, err := flows.Get(ctx, v.Flow)
	if err != nil {
		return in, err
	}
	left := &remains{flow: f, from: from}
	if err := r.Audit(ctx, id, left.read); err != nil {
		return in, err
	}
	from.Job, in.Trigger, in.Input = id, f.Trigger().Name, left.input
	if err := left.choose(); err != nil {
		return in, fmt.Errorf("%w: %w", ErrResume, err)
	}
	from.Children, err = completed(ctx, r, left.children())
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

// resumable says why a job cannot be resumed, or nil.
func resumable(v *store.JobView) error {
	switch {
	case v.Flow.Name == flow.UndoName:
		return errors.New("it runs the compensations of another job: decide on its dead letter")
	case v.State == journal.JobOpen:
		return errors.New("it is open: `quipu why` says what it waits for")
	case v.State == journal.JobQuarantined:
		return errors.New("it is quarantined: `quipu fsck` says what differs from its journal")
	case v.State == journal.JobCompleted:
		return errors.New("it has completed: there is nothing left to do")
	case !v.Ended:
		return errors.New("it is just being closed: try again in a moment")
	}
	return nil
}

// remains are what a closed job leaves to the job that resumes it.
type remains struct {
	flow  *flow.Flow
	from  *journal.From
	job   *replay.Job
	input []byte
	close *journal.Entry
	was   *journal.From         // the job that this one resumed itself
	ended map[journal.JobID]int // by child: the code of its outcome
}

// read reads the journal of the closed job.
func (l *remains) read(s *store.Stored, records iter.Seq2[journal.Record, error]) error {
	l.job = replay.New(replay.Header{Space: s.Job.Space, Job: s.Job.ID, Key: s.Job.Key, Generation: s.Job.Generation})
	l.ended = map[journal.JobID]int{}
	for r, err := range records {
		if err != nil {
			return err
		}
		if err := l.job.Apply(r); err != nil {
			return err
		}
		if !r.Chain.IsZero() {
			continue
		}
		e, err := journal.Decode(r)
		if err != nil {
			return err
		}
		if e.Kind == journal.KindCreated {
			l.input, l.was = e.Input, e.From
		}
		if e.Close != nil && l.close == nil {
			l.close = e
		}
		if x := e.Response; x != nil && !x.Child.IsZero() {
			l.ended[x.Child] = x.Code
		}
	}
	if l.close == nil {
		return errors.New("its journal has no end")
	}
	return nil
}

// choose picks the activity to resume from, unless one was named.
func (l *remains) choose() error {
	for key, i := range l.job.Instances {
		if act, _ := l.flow.Activity(key.Activity); i.Repeat && act != nil && i.ResultSeq > 0 {
			return fmt.Errorf("the hook %s takes signal after signal: what follows them cannot be taken over", act.Name)
		}
	}
	if l.from.Activity != "" {
		return l.named()
	}
	if l.job.Close.State != journal.JobFailed {
		return nil // interrupted: activities without a result are done again
	}
	i := l.job.Instances[collation.InstanceKey{Activity: l.close.Activity, DAD: collation.DAD(l.close.DAD)}]
	if i == nil || i.ResultSeq > 0 && i.Code == collation.CodeOK {
		return fmt.Errorf("no activity has failed, %s: name the one to go on from (--from), one of %s",
			failureText(l.close.Close), strings.Join(l.activities(), ", "))
	}
	l.from.Activity, l.from.DAD = l.close.Activity, l.close.DAD
	return nil
}

func failureText(c *journal.Close) string {
	if c.Error == nil {
		return "it was ended"
	}
	return c.Error.Message
}

// named checks the activity that was named.
func (l *remains) named() error {
	act, ok := l.flow.Activity(l.from.Activity)
	switch {
	case !ok:
		return fmt.Errorf("flow %s version %s has no activity %.80q: it has %s",
			l.flow.Name(), l.flow.Version(), l.from.Activity, strings.Join(l.activities(), ", "))
	case act == l.flow.Trigger():
		return errors.New("from its trigger on everything would be done again: start a job with another key")
	}
	return nil
}

func (l *remains) activities() (names []string) {
	for _, a := range l.flow.Activities() {
		if a != l.flow.Trigger() {
			names = append(names, a.Name)
		}
	}
	return names
}

// children lists the children whose await got no success, with the instances that will wait for
// them again.
func (l *remains) children() (all []journal.FromChild) {
	for key, i := range l.job.Instances {
		act, _ := l.flow.Activity(key.Activity)
		if act == nil || act.Type != flow.TypeAwait || i.Turn == 0 || !l.again(key, i) {
			continue
		}
		all = append(all, journal.FromChild{
			Activity: key.Activity, DAD: string(key.DAD), Job: collation.ChildID(i.Leg1, i.Turn),
		})
	}
	for start, p := range l.job.Pauses {
		key := collation.InstanceKey{Activity: p.Activity, DAD: p.DAD}
		i := l.job.Instances[key]
		child := journal.JobID(start)
		if p.Kind != journal.PauseChild || i == nil || !l.again(key, i) || l.ended[child] == collation.CodeOK ||
			l.job.Undos[p.Request] > 0 {
			continue
		}
		ref := p.PauseRef
		all = append(all, journal.FromChild{
			Activity: p.Activity, DAD: string(p.DAD), Element: element(i, p.Request), Of: &ref, Job: child,
		})
	}
	if l.was != nil { // also those that this job inherited and did not reach
		for _, x := range l.was.Children {
			if i := l.job.Instances[collation.InstanceKey{
				Activity: x.Activity, DAD: collation.DAD(x.DAD),
			}]; i == nil || i.ResultSeq == 0 {
				all = append(all, x)
			}
		}
	}
	slices.SortFunc(all, func(a, b journal.FromChild) int { return slices.Compare(a.Job[:], b.Job[:]) })
	return all
}

// again says whether an instance is done again.
func (l *remains) again(key collation.InstanceKey, i *replay.Instance) bool {
	act, _ := l.flow.Activity(key.Activity)
	return i.ResultSeq == 0 || collation.Again(l.flow, l.from, act, key.DAD, i.Code, false)
}

// element returns the index of a request in its list.
func element(i *replay.Instance, request journal.GUID) int {
	for n := range i.Count {
		if collation.RequestGUID(i.Leg1, n) == request {
			return n
		}
	}
	return 0
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
