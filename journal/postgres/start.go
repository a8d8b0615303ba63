package postgres

import (
	"bytes"
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/fault"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// startStatements are what a Start sends.
var startStatements = []string{
	"clock", "start_lookup", "begin", "write_marker", "write_jobs_new", "write_instances_new",
	"write_receipts_new", "write_entries", "write_rows_delete", "write_rows_new", "write_rows", "commit", "rollback",
}

// holder is what has a key already.
type holder struct {
	id         journal.JobID
	generation int64
	state      journal.JobState
	flow       journal.FlowRef
	input      []byte
}

// Start begins jobs, all in one transaction: one trip looks for their keys,
// one writes. A key that another starter took in between is looked for again.
func (s *Store) Start(ctx context.Context, starts []store.Start, mode collation.Mode) ([]store.Started, error) {
	if len(starts) > store.MaxStarts {
		return nil, tooMany("start", len(starts), store.MaxStarts)
	}
	if len(starts) == 0 {
		return nil, nil
	}
	var out []store.Started
	err := s.decide(ctx, "start", func(c *conn) error {
		if err := c.require(ctx, startStatements...); err != nil {
			return classify("start", err)
		}
		x := &starting{s: s, mode: mode}
		if err := c.run(ctx, x.lookup(starts)...); err != nil {
			return classify("start", err)
		}
		var fresh []store.Chained
		if out, fresh = x.incept(starts); len(fresh) == 0 {
			return nil
		}
		w, err := births(fresh)
		if err != nil {
			return err
		}
		fault.At(fault.K0, "start")
		return s.conclude(ctx, c, w.queue)
	})
	return out, err
}

// starting is one look at what has the keys of jobs that are to begin.
type starting struct {
	s       *Store
	mode    collation.Mode
	now     collation.Micros
	holders map[string]*holder
}

// lookup are the steps that read the clock and what has the keys.
func (x *starting) lookup(starts []store.Start) []step {
	x.holders = make(map[string]*holder)
	keys := texts(len(starts))
	for i := range starts {
		keys.text(starts[i].Key)
	}
	return []step{
		{"clock", nil, func(v row) error { x.now = collation.Micros(v.int(0)); return nil }},
		{"start_lookup", [][]byte{keys.value()}, func(v row) error {
			h := &holder{
				id: v.job(1), generation: v.int(2), state: journal.JobState(v.text(3)),
				flow: journal.FlowRef{Name: v.text(4), Version: v.text(5), Digest: v.digest(6)},
			}
			if !v.null(7) {
				e, err := decode(h.id, v.bytes(7))
				if err != nil {
					return err
				}
				h.input = e.Input
			}
			x.holders[starts[v.int(0)-1].Key] = h
			return nil
		}},
	}
}

// incept gives the answers, and the inceptions of those jobs whose key is free
// or that of a tombstone.
func (x *starting) incept(starts []store.Start) ([]store.Started, []store.Chained) {
	out := make([]store.Started, len(starts))
	var fresh []store.Chained
	begun := make(map[string]int, len(starts))
	for i := range starts {
		in := &starts[i]
		if first, twice := begun[in.Key]; twice {
			was := &starts[first]
			out[i] = started(in, &holder{id: out[first].Job, flow: was.Flow, input: was.Input})
			continue
		}
		generation := int64(1)
		if old := x.holders[in.Key]; old != nil {
			if old.state != journal.JobExpired {
				out[i] = started(in, old)
				continue
			}
			generation = old.generation + 1
		}
		begun[in.Key] = i
		p := collation.Incept(collation.Inception{
			Space: x.s.cfg.Space, Key: in.Key, Generation: generation, Flow: in.Flow, Trigger: in.Trigger, Input: in.Input,
			Trace: in.Trace, Now: x.now, Publish: in.Publish, Child: in.Child, Parent: in.Parent,
		}, x.mode)
		out[i].Job = p.Job
		if len(p.Insert) > 0 {
			out[i].Row = &store.Outgoing{Row: p.Insert[0], JobKey: in.Key, Generation: generation, Flow: in.Flow, Trace: in.Trace}
		}
		fresh = append(fresh, store.Chain(&collation.Job{ID: p.Job, Space: x.s.cfg.Space, Generation: generation}, p))
	}
	return out, fresh
}

// started is the answer for a key that exists (1.11).
func started(in *store.Start, h *holder) store.Started {
	return store.Started{Job: h.id, Err: &store.AlreadyStartedError{
		Job: h.id, Key: in.Key, SameFlow: h.flow.Name == in.Flow.Name, SameInput: bytes.Equal(h.input, in.Input),
	}}
}

// births are the writes of inceptions.
func births(fresh []store.Chained) (*writes, error) {
	w, err := merge(fresh)
	if err != nil {
		return nil, fmt.Errorf("postgres: start: %w: %w", store.ErrRejected, err)
	}
	w.jobs, w.births = nil, fresh
	return w, nil
}

// abandon rolls the connection's transaction back. Where even that fails the
// pool drops the connection, since it is in a transaction.
func abandon(ctx context.Context, c *conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = c.query(ctx, "rollback", nil)
}

func queueBirths(b *batch, fresh []store.Chained) {
	triggers, jobs := texts(len(fresh)), make([]*collation.Job, len(fresh))
	for i := range fresh {
		p := fresh[i].Plan
		e := p.Entry
		triggers.text(e.Activity)
		jobs[i] = &collation.Job{
			ID: e.Job, Key: e.Key, Generation: e.Generation, Flow: *e.Flow,
			State: p.NewState, Semaphore: p.Semaphore.After, Head: journal.Head{Seq: e.Seq, Hash: fresh[i].Hash},
			Started: collation.Micros(e.Time), Trace: e.Trace, Parent: e.Parent,
		}
	}
	b.queue("write_jobs_new", append([][]byte{triggers.value()}, jobColumns.params(jobs)...)...)
}
