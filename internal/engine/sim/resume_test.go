package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/workers"
)

// resumer resumes jobs of the world that failed or were interrupted.
func (w *world) resumer(most int) {
	dice := rand.New(rand.NewPCG(w.seed, 12)) //nolint:gosec // it must be repeatable
	c := w.client("resumer ", dice.IntN(2) == 0)
	for range most * forkTries {
		if !w.pause(time.Duration(200+dice.IntN(2800)) * time.Millisecond) {
			return
		}
		views := slices.DeleteFunc(w.views(journal.JobFailed, journal.JobInterrupted), func(v *store.JobView) bool {
			return !v.Ended || v.Flow.Name == flow.UndoName || !v.Next.IsZero() || v.Parent != nil
		})
		if c == nil || len(views) == 0 {
			continue
		}
		if w.resume(c, views[dice.IntN(len(views))]) {
			if most--; most == 0 {
				return
			}
		}
	}
}

// resume begins the next generation of a job. It returns false if this one cannot be resumed here:
// it waited for children, which the façade looks up.
func (w *world) resume(c *engine.Committer, v *store.JobView) bool {
	ctx := context.Background()
	f, err := w.plan.compiled.Get(ctx, v.Flow)
	if err != nil {
		panic(err)
	}
	var from *journal.From
	var input []byte
	w.audit(v.ID, func(s *store.Stored, entries iter.Seq2[journal.Record, error]) error {
		j, err := replayed(s, entries, func(_ *replay.Job, e *journal.Entry) {
			if e.Kind == journal.KindCreated {
				input = e.Input
			}
			if e.Close != nil && from == nil {
				from = &journal.From{Activity: e.Activity, DAD: e.DAD, Job: v.ID, Who: "resumer"}
			}
		})
		if err == nil && from != nil && !leavable(f, j, from) {
			from = nil
		}
		return err
	})
	if from == nil {
		return false
	}
	in := store.Start{Flow: v.Flow, Trigger: f.Trigger().Name, Key: v.Key, Input: input, Tags: v.Tags}
	id, err := insist(func() (journal.JobID, error) { return c.Resume(ctx, in, *from) })
	if errors.Is(err, store.ErrStale) { // the one before was carried out, and its answer was lost
		id, err = w.store.FindJob(ctx, v.Key)
	}
	switch {
	case err == nil:
		w.ack(v.Key, id)
	case !errors.Is(err, errOver) && !errors.Is(err, store.ErrNotFound):
		w.wrong("I9: resume of %s: %v", v.Key, err)
	}
	return true
}

// leavable says whether a job can be resumed without looking up children, and clears what is done
// again of one that was interrupted.
func leavable(f *flow.Flow, j *replay.Job, from *journal.From) bool {
	for key, i := range j.Instances {
		if act, _ := f.Activity(key.Activity); act == nil || act.Type == flow.TypeAwait || i.Repeat {
			return false
		}
	}
	for _, p := range j.Pauses {
		if p.Kind == journal.PauseChild {
			return false
		}
	}
	if j.Close.State != journal.JobFailed {
		from.Activity, from.DAD = "", ""
		return true
	}
	i := j.Instances[collation.InstanceKey{Activity: from.Activity, DAD: collation.DAD(from.DAD)}]
	return i != nil && (i.ResultSeq == 0 || i.Code != collation.CodeOK)
}

// placeOf names what a call outside is for: the request, or where jobs are resumed the place of
// the request in the first of them, since effects keep their keys (E1).
func (w *world) placeOf(ctx context.Context) string {
	c := workers.Info(ctx)
	if w.features.resumes == 0 {
		return c.Request
	}
	root := c.Job
	if c.Root != "" {
		root = c.Root
	}
	return fmt.Sprint(root, c.Activity, c.DAD, c.Element)
}
