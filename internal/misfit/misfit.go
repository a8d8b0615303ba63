package misfit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/workers"
)

// Misfit is something of the open jobs that does not fit a build.
type Misfit struct {
	Job               journal.JobID // zero: Err is about the version, not about one job
	Key               string
	Flow, Version     string
	Activity, Address string // of the instance; empty for none
	Topic             string // of the request; empty for none
	Err               error
}

// Check compares the open jobs of a space with a build. Store, Compiled and Say are required.
type Check struct {
	Store    *postgres.Store
	Compiled *engine.Flows
	// Say is called with each misfit. Its error ends the check.
	Say func(Misfit) error

	Workers   *workers.Registry          // the handlers of the build; nil: they are not compared
	Elsewhere []string                   // topics that others serve; they count only with Workers
	Flows     []*flow.Flow               // those that the build deploys
	Progress  func(jobs, requests int64) // called after each job; nil: nobody wants to know

	topics         []string
	fresh          map[string]*flow.Flow // the flows whose version is new to the space, by name
	told           map[[3]string]bool    // flow, version and topic of what is said once
	jobs, requests int64
}

// once says something of a version for the first job that shows it.
func (k *Check) once(m Misfit) error {
	of := [3]string{m.Flow, m.Version, m.Topic}
	if k.told[of] {
		return nil
	}
	k.told[of] = true
	return k.Say(m)
}

// Run looks at all open jobs.
func (k *Check) Run(ctx context.Context) error {
	k.fresh, k.told = map[string]*flow.Flow{}, map[[3]string]bool{}
	if k.Workers != nil {
		if err := k.Workers.Check(); err != nil {
			return err
		}
		k.topics = append(k.Workers.Topics(), k.Elsewhere...)
	}
	for _, f := range k.Flows {
		if err := k.deployable(ctx, f); err != nil {
			return err
		}
	}
	open := store.JobFilter{States: []journal.JobState{journal.JobOpen}, Limit: store.MaxPage}
	for {
		page, err := k.Store.Jobs(ctx, open)
		if err != nil {
			return err
		}
		for i := range page.Jobs {
			if err := k.job(ctx, page.Jobs[i].ID); err != nil {
				return err
			}
			if k.jobs++; k.Progress != nil {
				k.Progress(k.jobs, k.requests)
			}
		}
		if open.Before = page.Next; page.Next == "" {
			return nil
		}
	}
}

// deployable compares a flow with the version that is deployed.
func (k *Check) deployable(ctx context.Context, f *flow.Flow) error {
	text, err := k.Store.Flow(ctx, f.Name(), f.Version())
	switch {
	case errors.Is(err, store.ErrNotFound):
		k.fresh[f.Name()] = f
		return nil
	case err != nil:
		return err
	case store.SameFlow(collation.RefOf(f), text) == nil:
		return nil
	}
	return k.Say(Misfit{Flow: f.Name(), Version: f.Version(), Err: errors.New("it is deployed with other content: give the changed flow a new version")})
}

// job compares an open job; it is gone or closed if it was not open any more.
func (k *Check) job(ctx context.Context, id journal.JobID) error {
	v, err := k.Store.Job(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && v.State != journal.JobOpen {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := k.Compiled.Get(ctx, v.Flow)
	switch {
	case ctx.Err() != nil, errors.Is(err, store.ErrUnavailable):
		return err
	case err != nil:
		return k.once(Misfit{Flow: v.Flow.Name, Version: v.Flow.Version, Err: fmt.Errorf("open jobs run on it, and this build cannot use it: %w", err)})
	}
	if k.Workers != nil {
		if err := k.served(v, f); err != nil {
			return err
		}
	}
	for i := range v.Rows {
		row := &v.Rows[i]
		switch {
		case row.Kind == journal.MessageStart && row.Sender == v.ID:
			err = k.child(v, row)
		case row.Kind == journal.MessageRequest && k.Workers != nil && slices.Contains(k.Workers.Topics(), row.Topic):
			err = k.request(ctx, v, f, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// served compares the topics that a job can still come to.
func (k *Check) served(v *store.JobView, f *flow.Flow) error {
	var open map[string]bool
	for _, act := range f.Activities() {
		if act.Type != flow.TypeWorker || slices.Contains(k.topics, act.Topic) {
			continue
		}
		if open == nil {
			open = openActivities(v)
		}
		for from := range open {
			if !f.Follows(act.Name, from) {
				continue
			}
			err := fmt.Errorf("the job can come to topic %s, which this build does not serve", act.Topic)
			if err := k.once(Misfit{
				Job: v.ID, Key: v.Key, Flow: f.Name(), Version: f.Version(), Activity: act.Name, Topic: act.Topic,
				Err: err,
			}); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// openActivities are the activities of a job that have begun and not ended, or that a message is
// on its way to.
func openActivities(v *store.JobView) map[string]bool {
	open := map[string]bool{}
	for i := range v.Instances {
		if i := &v.Instances[i]; i.Ledger.State() == 0 {
			open[i.Key.Activity] = true
		}
	}
	for i := range v.Rows {
		if r := &v.Rows[i]; r.Sender.IsZero() {
			open[r.Activity] = true
		}
	}
	return open
}

// child compares the input of a child that has not begun with the version that it will take.
func (k *Check) child(v *store.JobView, row *collation.Row) error {
	order, err := row.Order()
	if err != nil {
		return nil // the engine refuses it, whatever the build
	}
	f := k.fresh[order.Flow]
	if f == nil || order.Version != "" && order.Version != f.Version() {
		return nil
	}
	if err := f.CheckInput(order.Input, flow.NewBudget(nil)); err != nil {
		return k.Say(Misfit{
			Job: v.ID, Key: v.Key, Flow: v.Flow.Name, Version: v.Flow.Version, Activity: order.Parent.Activity,
			Address: order.Parent.DAD,
			Err:     fmt.Errorf("its child %q has not begun, and version %s of flow %s refuses its input: %w", order.Key, f.Version(), f.Name(), err),
		})
	}
	return nil
}

// looks bounds how often a request is looked at whose job goes on meanwhile.
const looks = 3

// request compares an open request with its handler. Row and record are read one after the other,
// so a misfit counts only if the row is still the same.
func (k *Check) request(ctx context.Context, v *store.JobView, f *flow.Flow, row *collation.Row) error {
	k.requests++
	for range looks {
		misfit, err := work.Fits(ctx, k.Workers, k.Store, requestOf(v, f, row))
		if err != nil || misfit == nil {
			return err
		}
		now, err := k.Store.Job(ctx, v.ID)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		at := slices.IndexFunc(now.Rows, func(r collation.Row) bool { return r.GUID == row.GUID && r.Kind == row.Kind })
		switch {
		case at < 0:
			return nil // it was answered
		case now.Rows[at].Rev == row.Rev:
			return k.Say(Misfit{
				Job: v.ID, Key: v.Key, Flow: f.Name(), Version: f.Version(), Activity: row.Activity,
				Address: string(row.DAD), Topic: row.Topic, Err: misfit,
			})
		}
		row = &now.Rows[at]
	}
	return nil // it moves: the processes that live serve it
}

// requestOf is what a handler gets of an open request.
func requestOf(v *store.JobView, f *flow.Flow, r *collation.Row) wire.Request {
	c := wire.Request{
		Space: v.Space, Job: v.ID.String(), Key: v.Key, Generation: v.Generation, Flow: f.Name(), Version: f.Version(),
		Activity: r.Activity, DAD: string(r.DAD), Element: r.Element, Topic: r.Topic, Request: r.GUID.String(),
		Turn: r.Turn, Attempt: r.Attempt, Trace: v.Trace, Input: r.Body,
	}
	if act, ok := f.Activity(r.Activity); ok {
		c.Attempts, c.TimeoutMS = act.Retry.Attempts, act.Timeout.Milliseconds()
	}
	if v.From != nil && !v.From.Forks() {
		root, generation := v.Root()
		c.Root, c.RootGeneration = root.String(), generation
	}
	return c
}
