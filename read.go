package quipu

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/engine"
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

// Deploy stores flow versions. A new version becomes active: new jobs take it, and running jobs
// keep theirs. A version that is already deployed with the same content changes nothing, so a
// process that starts with old flows does not reactivate them. Other content under the same
// version is refused (ErrVersionTaken), and so are built-in flows (flow.Faults), which the
// runtime deploys itself. New versions and their Warnings are logged.
func (rt *Runtime) Deploy(ctx context.Context, flows ...*flow.Flow) error {
	return rt.deploy(ctx, true, flows)
}

// DeployInactive is Deploy without activation: new jobs take the version only after Activate. The
// first version of a flow is active at once.
func (rt *Runtime) DeployInactive(ctx context.Context, flows ...*flow.Flow) error {
	return rt.deploy(ctx, false, flows)
}

func (rt *Runtime) deploy(ctx context.Context, activate bool, flows []*flow.Flow) error {
	if i := slices.Index(flows, nil); i >= 0 {
		return fmt.Errorf("deploy: flow %d of %d is nil: give what flow.Parse or Build returned without an error", i+1, len(flows))
	}
	if err := rt.proc.Covers("to deploy flows"); err != nil && len(flows) > 0 {
		return err
	}
	var active []store.Schedule
	if activate && len(flows) > 0 {
		var err error
		if active, err = rt.store.Schedules(ctx); err != nil {
			return fmt.Errorf("deploy flows: %w", err)
		}
	}
	for _, f := range flows {
		if flow.IsBuiltin(f.Name()) {
			return flow.Faults{{Path: "flow", Text: f.Name(), Message: "a built-in flow: it is deployed when it is first needed"}}
		}
		if err := rt.proc.Keys.Know(ctx, topicsOf(f)...); err != nil {
			return fmt.Errorf("deploy flow %s version %s: store the keys of its topics: %w", f.Name(), f.Version(), err)
		}
		ref := collation.RefOf(f)
		fresh, err := false, rt.proc.Scheduler().HandOver(ctx, active, ref.Name, ref.Version)
		if err == nil {
			fresh, err = rt.store.Deploy(ctx, ref, f.Canonical(), activate)
		}
		switch {
		case errors.Is(err, store.ErrVersionTaken):
			return fmt.Errorf("flow %s version %s: %w: give the changed flow a new version", ref.Name, ref.Version, err)
		case err != nil:
			return fmt.Errorf("deploy flow %s version %s: %w", ref.Name, ref.Version, err)
		case fresh:
			rt.cfg.Logger.Info("flow deployed", "flow", ref.Name, "version", ref.Version)
			for _, w := range f.Warnings() {
				rt.cfg.Logger.Warn("a deployed flow is likely to have a mistake", "flow", ref.Name, "version", ref.Version, "place", w.Path, "warning", w.Message)
			}
		}
	}
	return nil
}

// topicsOf lists the topics that a flow sends requests to.
func topicsOf(f *flow.Flow) []string {
	var topics []string
	for _, a := range f.Activities() {
		if a.Type == flow.TypeWorker && !slices.Contains(topics, a.Topic) {
			topics = append(topics, a.Topic)
		}
	}
	return topics
}

// Activate sets the version that new jobs take; running jobs keep theirs. Its schedule goes on where
// that of the version before stood.
func (rt *Runtime) Activate(ctx context.Context, name, version string) error {
	if err := rt.proc.Covers("to activate a flow"); err != nil {
		return err
	}
	active, err := rt.store.Schedules(ctx)
	if err == nil {
		err = rt.proc.Scheduler().HandOver(ctx, active, name, version)
	}
	if err != nil {
		return fmt.Errorf("activate flow %s version %s: %w", name, version, err)
	}
	return rt.store.Activate(ctx, name, version)
}

// ExpireDefault returns how long closed jobs are kept whose flow has no `expire`; 0 means for
// good. A new space has 720 h.
func (rt *Runtime) ExpireDefault(ctx context.Context) (time.Duration, error) {
	return rt.store.ExpireDefault(ctx)
}

// SetExpireDefault sets that time: flow.MinExpire to flow.MaxExpire, or 0. A process reads the value
// with its first flow, so processes that run keep the old one until they restart. It needs the
// rights of the owner.
func (rt *Runtime) SetExpireDefault(ctx context.Context, d time.Duration) error {
	return rt.store.SetExpireDefault(ctx, d)
}

// PrivateKeys says whether the space keeps digests of the keys of jobs and signals, instead of the
// keys (S15).
func (rt *Runtime) PrivateKeys(ctx context.Context) (bool, error) { return rt.store.PrivateKeys(ctx) }

// KeepPrivateKeys lets the space keep digests, for good: "sha256:" and the SHA-256, in hexadecimal,
// over the space and the key. Every method takes a key or its digest, and returns the digest. It is
// for a new space: one that has jobs or signals is refused with ErrRejected. Open the space again
// after it; processes that were running begin no job any more until they restart. It needs the
// rights of the owner.
func (rt *Runtime) KeepPrivateKeys(ctx context.Context) error { return rt.store.SetPrivateKeys(ctx) }

// CreateRoles creates the space's group roles with least rights (S8): owner, engine, operator,
// worker, client, retention and verifier. The login of a worker is bound to topics by `quipu grant
// worker`. It needs CREATEROLE. Repeat it after each migration.
func (rt *Runtime) CreateRoles(ctx context.Context) error { return rt.store.Roles(ctx) }

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
			out = append(out, Child{Activity: in.Key.Activity, Address: string(in.Key.DAD), ID: in.Child, Turn: in.Turn, Attempt: in.Attempt})
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
