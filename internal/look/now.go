package look

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Find returns the job that has the key, or else the job with that id, so that earlier
// generations of a key are found: ErrNotFound.
func Find(ctx context.Context, rt *quipu.Runtime, key string) (quipu.Job, error) {
	job, err := rt.Find(ctx, key)
	if !errors.Is(err, quipu.ErrNotFound) {
		return job, err
	}
	id, bad := journal.ParseJobID(key)
	if bad != nil {
		return job, err
	}
	v, bad := rt.Job(ctx, quipu.Job{ID: id})
	if bad != nil {
		return job, err
	}
	return v.Job, nil
}

// Definition returns a flow version, nil if this build cannot read it or it was changed: then
// there is no graph.
func Definition(ctx context.Context, rt *quipu.Runtime, ref journal.FlowRef) *flow.Flow {
	text, err := below.Of(rt).Flow(ctx, ref.Name, ref.Version)
	if err != nil || store.SameFlow(ref, text) != nil {
		return nil
	}
	f, err := flow.FromCanonical(text)
	if err != nil {
		return nil
	}
	return f
}

// Now reads everything that explains the state of a job: ErrNotFound.
func Now(ctx context.Context, rt *quipu.Runtime, id journal.JobID) (*explain.Job, error) {
	v, err := below.Of(rt).Job(ctx, id)
	if err != nil {
		return nil, err
	}
	j := &explain.Job{View: v}
	if err := living(ctx, rt, j); err != nil {
		return nil, err
	}
	if v.State != journal.JobOpen && v.State != journal.JobExpired {
		err = closing(ctx, rt, j)
	}
	return j, err
}

// living adds what does not stand in the tables of the job: its flow, the time, the living
// processes.
func living(ctx context.Context, rt *quipu.Runtime, j *explain.Job) (err error) {
	j.Flow, j.Now, j.Zone = Definition(ctx, rt, j.View.Flow), collation.Micros(time.Now().UnixMicro()), time.Local
	j.Find = func(id journal.JobID) *store.JobSummary { return other(ctx, rt, id) }
	if j.Processes, err = below.Of(rt).Processes(ctx); err != nil {
		return err
	}
	if j.Processes == nil {
		j.Processes = []store.ProcessView{} // not nil: they were read, and there are none
	}
	j.Elsewhere = pulled(ctx, rt)
	j.Wrong, err = Wrong(ctx, rt, &health.Sight{Living: j.Processes, Open: j.View.State == journal.JobOpen})
	return err
}

// pulled tells of a topic whether a worker takes its requests that is no process of the space, and
// whether the queue of the topic could be seen. It asks once, when it is needed.
func pulled(ctx context.Context, rt *quipu.Runtime) func(topic string) (is, seen bool) {
	all := sync.OnceValue(func() []quipu.Topic {
		topics, _ := rt.Topics(ctx) // nothing is seen then
		return topics
	})
	return func(topic string) (is, seen bool) {
		for _, t := range all() {
			if t.Name == topic {
				return t.Elsewhere, t.Queued != quipu.QueueUnknown
			}
		}
		return false, false
	}
}

func other(ctx context.Context, rt *quipu.Runtime, id journal.JobID) *store.JobSummary {
	v, err := below.Of(rt).Job(ctx, id)
	if err != nil {
		return nil
	}
	return &v.JobSummary
}

// closing looks up the entry that closed or quarantined the job, and which child had failed.
func closing(ctx context.Context, rt *quipu.Runtime, j *explain.Job) error {
	var c closer
	for e, err := range rt.Journal(ctx, quipu.Job{ID: j.View.ID}) {
		if err != nil {
			return err
		}
		if c.add(e) {
			c.tell(j)
			return nil
		}
	}
	return nil
}

// closer looks for the entry that closed a job.
type closer struct {
	last     *journal.Entry
	outcomes []*journal.Entry
}

// maxOutcomes bounds the failed children that are compared with the error of the job.
const maxOutcomes = 1000

// add reports whether the entry closed or quarantined the job.
func (c *closer) add(e *journal.Entry) bool {
	if x := e.Response; x != nil && !x.Child.IsZero() && x.Code != collation.CodeOK {
		if c.outcomes = append(c.outcomes, e); len(c.outcomes) > maxOutcomes {
			c.outcomes = c.outcomes[1:]
		}
	}
	if e.Kind == journal.KindQuarantine || slices.Contains(e.Marks, journal.MarkClosed) {
		c.last = e
		return true
	}
	return false
}

func (c *closer) tell(j *explain.Job) {
	j.Last, j.Child = c.last, explain.PassedOn(j.View.Error, c.outcomes)
}
