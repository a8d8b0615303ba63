package differential

import (
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// What clients and operators ask and do.

// keys are the keys of the jobs that are started from outside.
var keys = []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "fixed", "fork 0", "fork 1", "nobody"}

// ids are the jobs of both, and one that is none.
func (w *twin) ids() []journal.JobID {
	all, err := both(w, "the jobs", func(s store.Store) (ids []journal.JobID, err error) {
		for id, failed := range s.AuditJobs(w.ctx, nil) {
			ids, err = append(ids, id), errors.Join(err, failed)
		}
		return ids, err
	})
	require.NoError(w, err)
	return append(all, journal.JobID{1})
}

// ask asks what clients ask.
func (w *twin) ask() {
	ids := w.ids()
	_, _ = both(w, "ended", func(s store.Store) (any, error) { return s.Ended(w.ctx, ids) })
	_, _ = both(w, "outcomes", func(s store.Store) (any, error) { return s.Outcomes(w.ctx, ids) })
	for _, key := range keys {
		_, _ = both(w, "find "+key, func(s store.Store) (any, error) { return s.FindJob(w.ctx, key) })
	}
	id, _ := recent(w, "asked", ids)
	_, _ = both(w, "effects of a job", func(s store.Store) (any, error) { return s.JobEffects(w.ctx, id) })
	if e, ok := recent(w, "effect", w.effects); ok {
		_, _ = both(w, "find effect", func(s store.Store) (any, error) { return s.FindEffect(w.ctx, e.Key) })
	}
	if r, ok := w.request(); ok {
		_, _ = both(w, "effects", func(s store.Store) (any, error) { return s.Effects(w.ctx, r.Job, r.GUID) })
		_, _ = both(w, "pauses", func(s store.Store) (any, error) { return s.Pauses(w.ctx, r.Job, r.GUID) })
	}
	_, _ = w.Letter(w.ctx, int64(w.upTo("letter", int(w.letter)+1)))
	_, _ = both(w, "schedules", func(s store.Store) (any, error) { return s.Schedules(w.ctx) })
	_, _ = both(w, "default", func(s store.Store) (any, error) { return s.ExpireDefault(w.ctx) })
	_, _ = both(w, "epoch", func(s store.Store) (any, error) { return s.Epoch(w.ctx) })
}

// publish deploys and activates flow versions, and moves schedules.
func (w *twin) publish() {
	name, version := pick(w, "flow", "kid", "work", "wait", "nobody"), pick(w, "version", "1", "2")
	active, err := both(w, "active "+name, func(s store.Store) (any, error) {
		ref, body, err := s.ActiveFlow(w.ctx, name)
		return []any{ref, body}, err
	})
	switch w.upTo("about a flow", 3) {
	case 0:
		_, _ = both(w, "activate", func(s store.Store) (any, error) { return nil, s.Activate(w.ctx, name, version, "") })
	case 1:
		all, err := both(w, "schedules", func(s store.Store) ([]store.Schedule, error) { return s.Schedules(w.ctx) })
		require.NoError(w, err)
		x := pick(w, "schedule", all...)
		before := x.Last + collation.Micros(w.upTo("off", 9)/9)
		after := x.Now - collation.Micros(w.upTo("before", 9)/9*1_000_000_000)
		_, _ = both(w, "mark", func(s store.Store) (any, error) {
			return nil, s.MarkSchedule(w.ctx, x.Ref.Name, before, after)
		})
	case 2:
		days := w.upTo("days", 3)
		_, _ = both(w, "default", func(s store.Store) (any, error) {
			return nil, s.SetExpireDefault(w.ctx, time.Duration(days)*24*time.Hour)
		})
	default:
		if err != nil {
			return
		}
		source := fmt.Appendf(nil, "flow: %s\nversion: %q\nactivities: {start: {type: trigger}}", name, version)
		f, err := flow.Parse("flow.yaml", source)
		require.NoError(w, err)
		ref, active := collation.RefOf(f), w.chance("active", 50)
		_, err = both(w, "deploy", func(s store.Store) (store.Deployed, error) {
			return s.Deploy(w.ctx, store.Deployment{Ref: ref, Canonical: f.Canonical(), Activate: active})
		})
		if err == nil {
			w.flows[name+" "+version] = f
		}
	}
	w.Logf("was active: %v", active)
}

// stray is what comes that belongs to nothing, or no more.
func (w *twin) stray() {
	id, _ := recent(w, "of job", w.ids())
	switch w.upTo("stray", 3) {
	case 0:
		_ = w.driven().DeadLetter(w.ctx, collation.DeadLetter{Reason: "foreign", Message: "drawn"}, []byte("raw"))
	case 1:
		var rows []collation.RowKey
		for _, r := range w.rows() {
			rows = append(rows, collation.RowKey{Job: r.Job, GUID: r.GUID})
		}
		_ = w.driven().Discard(w.ctx, rows)
		w.everything()
	case 2:
		_, _ = both(w, "prune", func(s store.Store) (any, error) {
			_, err := s.Prune(w.ctx, store.MaxSweep) // Postgres counts its markers, too
			return nil, err
		})
	default:
		caller := fmt.Sprint(w.upTo("caller", 2))
		o := collation.InterruptOrder{
			Code: collation.CodeInterrupted, Reason: "drawn", Throw: w.chance("throw", 50), From: caller,
		}
		row, err := o.Row(collation.AskedInterruptGUID(caller, id), id, 1)
		require.NoError(w, err)
		_, _ = w.driven().Interrupt(w.ctx, row, w.mode)
	}
}

// goOn resumes or forks a job.
func (w *twin) goOn() {
	id, _ := recent(w, "source", w.ids())
	from := journal.From{Who: "ann", Reason: "drawn"}
	known := engine.NewFlows(w)
	if in, err := engine.PlanResume(w.ctx, w.memory, known, id, &from); err == nil {
		w.begins(in, from)
		return
	}
	v, err := w.memory.Job(w.ctx, id)
	if err != nil {
		return
	}
	at := 1 + int64(w.upTo("at", int(v.Head.Seq)))
	from = journal.From{Who: "ann", Reason: "drawn", Fork: &journal.Fork{Job: id, Generation: v.Generation, At: at}}
	if _, in, err := engine.PlanFork(w.ctx, w.memory, known, id, &from); err == nil {
		in.Key = pick(w, "fork", "fork 0", "fork 1")
		w.begins(in, from)
	}
}

// begins commits the inception of a job that goes on from another, as an engine does.
func (w *twin) begins(in store.Start, from journal.From) {
	c := w.pair()
	defer c.Close()
	l, err := c.Load(w.ctx, []store.Want{{Job: from.Job}, {Key: in.Key}}, true)
	if err != nil {
		return
	}
	st, held := l.States[from.Job], l.Holders[in.Key]
	decide, possible := collation.Resume, held != nil
	if from.Fork != nil {
		decide, possible = collation.Fork, held == nil || held.State == journal.JobExpired
	}
	x, last := in.Inception(space, l.Now), (*collation.Plan)(nil)
	if st != nil && possible {
		last, err = decide(st, held, &x, from, w.mode)
	}
	if last == nil || err != nil {
		require.NoError(w, c.Rollback(w.ctx))
		return
	}
	chained := store.Chain(&st.Job, last)
	x.GoOn(st)
	p := collation.Incept(x, w.mode)
	first := store.Chain(&collation.Job{ID: p.Job, Space: space, Generation: x.Generation}, p)
	_ = c.Commit(w.ctx, []store.Chained{chained, first})
}
