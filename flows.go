package quipu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/view"
)

// Deploy stores flow versions. A new version becomes active: new jobs take it, and running jobs
// keep theirs. A version that is already deployed with the same content changes nothing, so a
// process that starts with old flows does not reactivate them. Other content under the same
// version is refused (ErrVersionTaken), and so are built-in flows (flow.Faults), which the
// runtime deploys itself. New versions and their Warnings are logged; each new version is an entry of
// the space's own chain (S7), with the name of this process. Operator.Deploy is for people.
func (rt *Runtime) Deploy(ctx context.Context, flows ...*flow.Flow) error {
	if i := slices.Index(flows, nil); i >= 0 {
		return fmt.Errorf("deploy: flow %d of %d is nil: give what flow.Parse or Build returned without an error", i+1, len(flows))
	}
	for _, f := range flows {
		if _, err := rt.Operator().Deploy(ctx, f, true, ""); err != nil {
			return err
		}
	}
	return nil
}

// Flows lists the deployed versions of all flows, by name and then by the time of their deployment.
func (rt *Runtime) Flows(ctx context.Context) ([]view.FlowVersion, error) {
	all, err := rt.store.Flows(ctx)
	out := make([]view.FlowVersion, len(all))
	for i, f := range all {
		out[i] = view.FlowVersion{
			Flow: f.Ref.Name, Version: f.Ref.Version, Digest: f.Ref.Digest, Active: f.Active,
			Deployed: time.UnixMicro(int64(f.Deployed)).UTC(),
		}
	}
	return out, err
}

// Deploy is Runtime.Deploy of one flow by a person, who stands in the space's own chain; "" is this
// process. Without activate new jobs take a new version only after Activate, except the first version
// of a flow, which they take at once.
func (o Operator) Deploy(ctx context.Context, f *flow.Flow, activate bool, who Who) (*view.Deployed, error) {
	rt := o.rt
	switch {
	case f == nil:
		return nil, errors.New("deploy: the flow is nil: give what flow.Parse or Build returned without an error")
	case flow.IsBuiltin(f.Name()):
		return nil, flow.Faults{{Path: "flow", Text: f.Name(), Message: "a built-in flow: it is deployed when it is first needed"}}
	}
	if err := rt.proc.Covers("to deploy flows"); err != nil {
		return nil, err
	}
	var active []store.Schedule
	ref := collation.RefOf(f)
	err := rt.proc.Keys.Know(ctx, topicsOf(f)...)
	if err != nil {
		return nil, fmt.Errorf("deploy flow %s version %s: store the keys of its topics: %w", ref.Name, ref.Version, err)
	}
	if activate {
		active, err = rt.store.Schedules(ctx)
	}
	if err == nil {
		err = rt.proc.Scheduler().HandOver(ctx, active, ref.Name, ref.Version)
	}
	var done store.Deployed
	if err == nil {
		done, err = rt.store.Deploy(ctx, store.Deployment{
			Ref: ref, Canonical: f.Canonical(), Activate: activate, Who: wire.CutText(string(who)),
		})
	}
	switch {
	case errors.Is(err, store.ErrVersionTaken):
		return nil, fmt.Errorf("flow %s version %s: %w: give the changed flow a new version", ref.Name, ref.Version, err)
	case err != nil:
		return nil, fmt.Errorf("deploy flow %s version %s: %w", ref.Name, ref.Version, err)
	case done.Fresh:
		rt.cfg.Logger.Info("flow deployed", "flow", ref.Name, "version", ref.Version)
		for _, w := range f.Warnings() {
			rt.cfg.Logger.Warn("a deployed flow is likely to have a mistake", "flow", ref.Name, "version", ref.Version, "place", w.Path, "warning", w.Message)
		}
	}
	return &view.Deployed{
		Flow: ref.Name, Version: ref.Version, Digest: ref.Digest, Fresh: done.Fresh, Active: done.Active,
	}, nil
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
// that of the version before stood. If that was another one, who asks stands in the space's own chain
// (S7), "" is this process. Error: ErrNotFound.
func (o Operator) Activate(ctx context.Context, name, version string, who Who) error {
	if err := o.rt.proc.Covers("to activate a flow"); err != nil {
		return err
	}
	active, err := o.rt.store.Schedules(ctx)
	if err == nil {
		err = o.rt.proc.Scheduler().HandOver(ctx, active, name, version)
	}
	if err != nil {
		return fmt.Errorf("activate flow %s version %s: %w", name, version, err)
	}
	return o.rt.store.Activate(ctx, name, version, wire.CutText(string(who)))
}
