package quipu

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
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// ErrResume says that the job cannot be resumed as asked. Nothing was begun.
var ErrResume = errors.New("refused to resume")

// ResumeOption changes how a job is resumed: From, Who, Reason.
type ResumeOption interface{ toResume(f *journal.From) }

// From names the activity to resume from. It is done again, with all that follows from it and in
// a loop with every pass, whether it had succeeded or not. The default is the activity that
// failed.
type From string

func (a From) toResume(f *journal.From) { f.Activity = string(a) }

// Who is the person who decides or asks, for the journal. It is an option of Resume, Start, Signal
// and Interrupt.
type Who string

func (w Who) toStart(r *StartRequest) { r.Who = string(w) }

func (w Who) toInterrupt(o *interruptOptions) error {
	o.order.Who = wire.CutText(string(w))
	return nil
}

func (w Who) toSignal(o *signalOptions) error {
	o.who = wire.CutText(string(w))
	return nil
}

func (w Who) toResume(f *journal.From) { f.Who = wire.CutText(string(w)) }

func (r Reason) toResume(f *journal.From) { f.Reason = wire.CutText(string(r)) }

// Resume continues a job that has failed or was interrupted. A job with an ID is that one: ErrStale if
// it is not the last that has had its key. A job with only a key is that which has the key now. Resume
// begins the next generation of the key, on the same flow version and with the same input. Activities before the one that failed
// keep their results, and so do the elements of a list that succeeded. Effects keep their keys,
// also those of the failed activity: a recorded result is reused, an error runs again under the
// next key, and a verifier or a person is asked about an unknown outcome. A function whose
// compensations have run begins anew.
//
// The old job stays as it is, under its ID; the key now names the new one. Each journal names the
// other.
//
// Errors: ErrNotFound; ErrResume, which says what to do; ErrStale if somebody else has resumed
// it; ErrLogin for the login of a client or a worker; or the store's: with ErrUnavailable nothing was begun, with ErrUnknown the job may have
// been.
func (rt *Runtime) Resume(ctx context.Context, job Job, opts ...ResumeOption) (Job, error) {
	from := journal.From{}
	for _, o := range opts {
		o.toResume(&from)
	}
	if err := rt.covers("to resume a job"); err != nil {
		return Job{}, err
	}
	job, err := rt.known(ctx, job)
	if err != nil {
		return Job{}, err
	}
	v, err := rt.store.Job(ctx, job.ID)
	if err != nil {
		return Job{}, fmt.Errorf("job %.80q: %w", job.name(), err)
	}
	key := v.Key
	job.Key = key
	refused := func(err error) (Job, error) { return Job{}, fmt.Errorf("job %.80q: %w: %w", key, ErrResume, err) }
	if err := resumable(v); err != nil {
		return refused(err)
	}
	if err := rt.sourced(ctx, v.From); err != nil {
		return Job{}, fmt.Errorf("job %.80q: %w", key, err)
	}
	f, err := rt.flows.Get(ctx, v.Flow)
	if err != nil {
		return Job{}, fmt.Errorf("job %q: %w", key, err)
	}
	left := &leavings{flow: f, from: &from}
	if err := rt.store.Audit(ctx, job.ID, left.read); err != nil {
		return Job{}, fmt.Errorf("job %q: %w", key, err)
	}
	from.Job = job.ID
	if err := left.choose(); err != nil {
		return refused(err)
	}
	if from.Children, err = rt.ended(ctx, left.children()); err != nil {
		return Job{}, fmt.Errorf("job %.80q: %w", key, err)
	}
	in := store.Start{Flow: v.Flow, Trigger: f.Trigger().Name, Key: key, Input: left.input, Tags: v.Tags, Trace: v.Trace}
	if job.ID, err = rt.committer.Resume(ctx, in, from); err != nil {
		return Job{}, fmt.Errorf("job %.80q: %w", key, err)
	}
	return job, nil
}

// sourced returns ErrResume if the job from which a fork takes results over has expired.
func (rt *Runtime) sourced(ctx context.Context, from *journal.From) error {
	if from == nil || from.Fork == nil {
		return nil
	}
	source, err := rt.store.Job(ctx, from.Fork.Job)
	if errors.Is(err, ErrNotFound) || err == nil && source.State == journal.JobExpired {
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

// leavings is what a closed job leaves to the job that resumes it.
type leavings struct {
	flow  *flow.Flow
	from  *journal.From
	job   *replay.Job
	input []byte
	close *journal.Entry
	was   *journal.From         // the job that this one resumed itself
	ended map[journal.JobID]int // by child: the code of its outcome
}

// read reads the journal of the closed job.
func (l *leavings) read(s *store.Stored, records iter.Seq2[journal.Record, error]) error {
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
func (l *leavings) choose() error {
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
func (l *leavings) named() error {
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

func (l *leavings) activities() (names []string) {
	for _, a := range l.flow.Activities() {
		if a != l.flow.Trigger() {
			names = append(names, a.Name)
		}
	}
	return names
}

// children lists the children whose await got no success, with the instances that will wait for
// them again.
func (l *leavings) children() (all []journal.FromChild) {
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
		if p.Kind != journal.PauseChild || i == nil || !l.again(key, i) || l.ended[child] == collation.CodeOK || l.job.Undos[p.Request] > 0 {
			continue
		}
		ref := p.PauseRef
		all = append(all, journal.FromChild{
			Activity: p.Activity, DAD: string(p.DAD), Element: element(i, p.Request), Of: &ref, Job: child,
		})
	}
	if l.was != nil { // also those that this job inherited and did not reach
		for _, x := range l.was.Children {
			if i := l.job.Instances[collation.InstanceKey{Activity: x.Activity, DAD: collation.DAD(x.DAD)}]; i == nil || i.ResultSeq == 0 {
				all = append(all, x)
			}
		}
	}
	slices.SortFunc(all, func(a, b journal.FromChild) int { return slices.Compare(a.Job[:], b.Job[:]) })
	return all
}

// again says whether an instance is done again.
func (l *leavings) again(key collation.InstanceKey, i *replay.Instance) bool {
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

// ended keeps the children that have begun. It returns ErrResume if one of them has not completed
// since.
func (rt *Runtime) ended(ctx context.Context, children []journal.FromChild) ([]journal.FromChild, error) {
	var all []journal.FromChild
	for _, x := range children {
		child, err := rt.store.Job(ctx, x.Job)
		if errors.Is(err, ErrNotFound) {
			continue // its start was cancelled
		}
		if err != nil {
			return nil, err
		}
		last, err := rt.Find(ctx, child.Key)
		if errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("%w: %s waited for job %q, which has expired: what it did is not known any more", ErrResume, x.Activity, child.Key)
		}
		if err != nil {
			return nil, err
		}
		v, err := rt.store.Job(ctx, last.ID)
		switch {
		case err != nil:
			return nil, err
		case v.State == journal.JobCompleted && v.Ended:
			all = append(all, x)
		case v.State == journal.JobFailed || v.State == journal.JobInterrupted:
			return nil, fmt.Errorf("%w: %s waited for job %q, which %s: resume that first (quipu resume %q), and this one when it has completed", ErrResume, x.Activity, child.Key, ending(v.State), child.Key)
		default:
			return nil, fmt.Errorf("%w: %s waited for job %q, which is %s: wait for its end, or interrupt it", ErrResume, x.Activity, child.Key, v.State)
		}
	}
	if len(all) > journal.MaxFromChildren {
		return nil, fmt.Errorf("%w: it waited for %d jobs that have completed since, the limit is %d", ErrResume, len(all), journal.MaxFromChildren)
	}
	return all, nil
}

func ending(s journal.JobState) string {
	if s == journal.JobFailed {
		return "failed"
	}
	return "was interrupted"
}
