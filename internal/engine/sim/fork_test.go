package sim

import (
	"bytes"
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
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// forks counts what the forker did: jobs that go on from an entry of another one (O12).
type forks struct {
	forked, declined int
}

// forkTries is how often the forker looks for an entry, for each of its forks.
const forkTries = 6

// forker forks jobs of the world, at any of their entries, open or closed.
func (w *world) forker(most int) {
	dice := rand.New(rand.NewPCG(w.seed, 10)) //nolint:gosec // it must be repeatable
	c := w.client("forker ", dice.IntN(2) == 0)
	for n := range most {
		for range forkTries {
			if !w.pause(time.Duration(200+dice.IntN(1800)) * time.Millisecond) {
				return
			}
			if c == nil || w.fork(c, fmt.Sprint("fork-", n+1), dice) {
				break
			}
		}
	}
}

// fork begins a job from a random entry of a random job. It returns false if there is none that
// can be forked.
func (w *world) fork(c *engine.Committer, as string, dice *rand.Rand) bool {
	views := slices.DeleteFunc(w.views(), func(v *store.JobView) bool {
		return v.Flow.Name == flow.UndoName || v.From != nil || v.State == journal.JobExpired
	})
	if len(views) == 0 {
		return false
	}
	ctx, v := context.Background(), views[dice.IntN(len(views))]
	at := 1 + dice.Int64N(v.Head.Seq)
	f, err := w.plan.compiled.Get(ctx, v.Flow)
	if err != nil {
		panic(err)
	}
	cut, err := inspect.CutAt(ctx, w.store, v.ID, at)
	if err != nil {
		return false // it was removed meanwhile
	}
	if err := cut.Clean(f); err != nil {
		w.declined++
		return false
	}
	if request := w.blurred(v.ID, f, at); request != "" {
		w.wrong("O12: job %s may be forked at entry %d, and %s was under way with recorded effects", v.Key, at, request)
	}
	in := store.Start{Flow: v.Flow, Trigger: f.Trigger().Name, Key: as, Input: cut.Input, Tags: v.Tags}
	from := journal.From{Job: v.ID, Who: "forker", Fork: &journal.Fork{At: at}}
	id, err := insist(func() (journal.JobID, error) { return c.Fork(ctx, in, from) })
	switch _, there := errors.AsType[*store.AlreadyStartedError](err); {
	case err == nil, there:
		w.forked++
		w.ack(as, id)
	case !errors.Is(err, errOver) && !errors.Is(err, store.ErrNotFound):
		w.wrong("I9: fork %s of %s: %v", as, v.Key, err)
	}
	return true
}

// blurred names a request that had been sent and not answered at the entry and has recorded
// effects, as the tables tell; "" if there is none.
func (w *world) blurred(id journal.JobID, f *flow.Flow, at int64) string {
	open := map[journal.GUID]string{}
	w.audit(id, func(s *store.Stored, entries iter.Seq2[journal.Record, error]) error {
		began := map[collation.InstanceKey]bool{}
		j, err := replayed(s, entries, func(j *replay.Job, e *journal.Entry) {
			for key, i := range j.Instances {
				began[key] = began[key] || e.Seq <= at && i.Ledger.Leg1Complete()
			}
		})
		if err != nil {
			return err
		}
		for key, i := range j.Instances {
			if act, ok := f.Activity(key.Activity); !ok || act.Type != flow.TypeWorker || !began[key] ||
				by(&i.Recorded, at) {
				continue
			}
			for n := range max(i.Count, 1) {
				if !by(j.Passes[collation.InstanceKey{Activity: fmt.Sprintf("%s[%d]", key.Activity, n), DAD: key.DAD}], at) {
					open[collation.RequestGUID(i.Leg1, n)] = fmt.Sprintf("%s at %s", key.Activity, key.DAD)
				}
			}
		}
		return nil
	})
	for request, name := range open {
		if rows, err := w.store.Effects(context.Background(), id, request); err == nil && len(rows) > 0 {
			return name
		}
	}
	return ""
}

// by says that a result stood in an entry up to at.
func by(r *replay.Recorded, at int64) bool { return r != nil && r.ResultSeq > 0 && r.ResultSeq <= at }

// replayed is the job by the entries of its main chain; each is called after every one of them.
func replayed(
	s *store.Stored, entries iter.Seq2[journal.Record, error], each func(*replay.Job, *journal.Entry),
) (*replay.Job, error) {
	header, _ := s.Replay()
	j := replay.New(header, replay.KeepOutputs)
	for r, err := range entries {
		if err != nil {
			return nil, err
		}
		if !r.Chain.IsZero() {
			continue
		}
		if err := j.Apply(r); err != nil {
			return nil, err
		}
		r.Job = header.Job
		e, err := journal.Decode(r)
		if err != nil {
			return nil, err
		}
		each(j, e)
	}
	return j, nil
}

// sourced checks that what an open fork goes on from is still there (J7).
func (w *world) sourced(s *store.Stored) {
	if s.Job.From == nil || s.Job.State != journal.JobOpen {
		return
	}
	v, err := w.store.Job(context.Background(), s.Job.From.Job)
	if errors.Is(err, store.ErrNotFound) || err == nil && v.State == journal.JobExpired {
		w.wrong("J7: job %s is open, and job %s, from which it goes on, is being removed", s.Job.Key, s.Job.From.Job)
	}
}

// forksFit compares each fork with the job that it goes on from: what had a result at the entry
// has the same here, from there, and is not done again; nothing later is taken over; and the other
// journal says so (O12, V11).
func (w *world) forksFit(views []*store.JobView) {
	for _, v := range views {
		if v.From == nil || v.State == journal.JobExpired {
			continue
		}
		if from, err := w.store.Job(context.Background(), v.From.Job); err != nil || from.State == journal.JobExpired {
			continue // the fork has closed, and what it went on from is a tombstone
		}
		if report, err := store.VerifyJob(context.Background(), w.store, v.ID, compiledFlows, nil); err == nil &&
			report.Violated() {
			w.wrong("V11: job %s, which goes on from another: %v", v.Key, report.First)
		}
		if !v.From.Forks() {
			continue
		}
		jobs, taken := map[journal.JobID]*replay.Job{}, map[int64]*journal.Taken{}
		answered, ended := map[collation.InstanceKey]bool{}, map[collation.InstanceKey]bool{}
		for _, id := range []journal.JobID{v.From.Job, v.ID} {
			w.audit(id, func(s *store.Stored, entries iter.Seq2[journal.Record, error]) (err error) {
				clear(taken)
				clear(answered)
				jobs[id], err = replayed(s, entries, func(j *replay.Job, e *journal.Entry) {
					if id == v.From.Job && e.Seq == v.From.Head.Seq {
						for key, i := range j.Instances {
							ended[key] = i.Ledger.Finalized()
						}
					}
					switch r, x := e.Result, e.Response; {
					case r != nil && r.Taken != nil:
						taken[e.Seq] = r.Taken
					case x != nil && x.Taken != nil:
						taken[e.Seq] = x.Taken
					case e.Operator != nil && e.Operator.Action == collation.ActionAnswer:
						answered[collation.InstanceKey{Activity: e.Activity, DAD: collation.DAD(e.DAD)}] = true
					}
				})
				return err
			})
		}
		if was, j := jobs[v.From.Job], jobs[v.ID]; was != nil && j != nil {
			for _, wrong := range unlike(was, v.From.Fork.At, j, taken, answered, ended) {
				w.wrong("O12: fork %s of entry %d: %s", v.Key, v.From.Fork.At, wrong)
			}
		}
	}
}

// unlike says where a fork j differs from what the other job had at the entry. taken are the
// copies that j names, by the entry that holds each. An operator may have answered in place of a
// copy that the database refused: answered. An engine that takes every step by itself writes a
// result to the tables after its entry, with the step that ends the instance, so that a fork that
// is made in between does it again: it is not among those that had ended by then.
func unlike(
	was *replay.Job, at int64, j *replay.Job, taken map[int64]*journal.Taken, answered,
	ended map[collation.InstanceKey]bool,
) (wrongs []string) {
	for key, i := range j.Instances {
		if i.ResultSeq == 0 || i.Repeat || key.DAD == ",0" || answered[key] {
			continue
		}
		from, before, wrong := taken[i.ResultSeq], was.Instances[key], ""
		switch had := before != nil && by(&before.Recorded, at); {
		case had && from == nil && !ended[key]:
		case had && (from == nil || !from.Forked || from.Seq != before.ResultSeq):
			wrong = fmt.Sprintf("had its result at entry %d, and is done again: %+v", before.ResultSeq, from)
		case had && (i.Code != before.Code ||
			i.Output != nil && before.Output != nil && !bytes.Equal(i.Output, before.Output)):
			wrong = fmt.Sprintf("has %d %.80s, and had %d %.80s", i.Code, i.Output, before.Code, before.Output)
		case !had && i.Count == 0 && from != nil: // an element's may end its list
			wrong = fmt.Sprintf("has the result of entry %d, and had none", from.Seq)
		}
		if wrong != "" {
			wrongs = append(wrongs, fmt.Sprintf("%s at %s %s", key.Activity, key.DAD, wrong))
		}
	}
	slices.Sort(wrongs)
	return wrongs
}
