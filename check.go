package quipu

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/misfit"
	"github.com/quipu-journal/quipu/workers"
)

// OpenCheck says what a build has, for CheckOpen. A zero field is not compared.
type OpenCheck struct {
	// Workers has the handlers of the build.
	Workers *workers.Registry
	// Elsewhere lists the topics that other builds serve, and workers in other languages. They
	// count only with Workers.
	Elsewhere []string
	// Flows are those that the build deploys.
	Flows []*flow.Flow
	// Progress is called after each job, with the numbers of jobs and of their requests that were
	// looked at so far. nil: nobody wants to know.
	Progress func(jobs, requests int64)
}

// Misfit is something of the open jobs that does not fit a build.
type Misfit struct {
	Job               Job // zero: Err is about the version, not about one job
	Flow, Version     string
	Activity, Address string // of the instance; empty for none
	Topic             string // of the request; empty for none
	Err               error
}

// String says it in one line.
func (m Misfit) String() string {
	of := fmt.Sprintf("flow %s version %s", m.Flow, m.Version)
	if m.Job.Key != "" {
		of = fmt.Sprintf("job %q of %s", m.Job.Key, of)
	}
	if m.Activity != "" {
		of += ", " + m.Activity
	}
	if m.Address != "" {
		of += " at " + m.Address
	}
	return of + ": " + m.Err.Error()
}

// CheckOpen yields what of the open jobs does not fit a build (O12). A pipeline calls it in the
// new binary before it replaces the old one:
//
//   - a version of a flow that an open job runs on, and that this build cannot read;
//   - a topic that an open job can still come to, and that the build does not serve: once for
//     each version, with the first job;
//   - an open request that its handler does not fit: a durable function
//     takes another path than the recorded one, or a handler cannot read its input;
//   - a flow of the build that is deployed with other content under the same version;
//   - a child that has not begun and whose input the new version of its flow refuses.
//
// Nothing is written. One job is in memory at a time, and each costs a round trip, each request
// of a durable function two more. A job that goes on meanwhile is looked at again; one that begins
// meanwhile is not. After an error it ends.
func (rt *Runtime) CheckOpen(ctx context.Context, c OpenCheck) iter.Seq2[Misfit, error] {
	enough := errors.New("the caller has enough")
	return func(yield func(Misfit, error) bool) {
		k := misfit.Check{
			Store: rt.store, Compiled: rt.flows, Workers: c.Workers, Elsewhere: c.Elsewhere, Flows: c.Flows, Progress: c.Progress,
			Say: func(m misfit.Misfit) error {
				out := Misfit{
					Job: Job{ID: m.Job, Key: m.Key}, Flow: m.Flow, Version: m.Version, Activity: m.Activity, Address: m.Address, Topic: m.Topic, Err: m.Err,
				}
				if !yield(out, nil) {
					return enough
				}
				return nil
			},
		}
		if err := k.Run(ctx); err != nil && !errors.Is(err, enough) {
			yield(Misfit{}, fmt.Errorf("check the open jobs: %w", err))
		}
	}
}
