package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// startStatements are what a Start sends.
var startStatements = []string{
	"clock", "start_lookup", "begin", "write_marker", "write_jobs_new", "write_instances_new",
	"write_receipts_new", "write_entries", "write_rows_new", "commit", "rollback",
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
	var err error
	for range maxTries {
		err = s.call(ctx, "start", func(c *conn) (err error) {
			out, err = s.start(ctx, c, starts, mode)
			return err
		})
		if !errors.Is(err, store.ErrLost) {
			break
		}
	}
	return out, err
}

func (s *Store) start(ctx context.Context, c *conn, starts []store.Start, mode collation.Mode) ([]store.Started, error) {
	now, holders, err := s.lookup(ctx, c, starts)
	if err != nil {
		return nil, classify("start", err)
	}
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
		old := holders[in.Key]
		if old != nil && old.state != journal.JobExpired {
			out[i] = started(in, old)
			continue
		}
		begun[in.Key] = i
		generation := int64(1)
		if old != nil {
			generation = old.generation + 1
		}
		chained, outgoing := s.incept(in, generation, now, mode)
		fresh = append(fresh, chained)
		out[i] = store.Started{Job: chained.Plan.Job, Row: outgoing}
	}
	if len(fresh) == 0 {
		return out, nil
	}
	return out, s.begin(ctx, c, fresh)
}

// lookup reads the clock and what has the keys.
func (s *Store) lookup(ctx context.Context, c *conn, starts []store.Start) (collation.Micros, map[string]*holder, error) {
	if err := c.require(ctx, startStatements...); err != nil {
		return 0, nil, err
	}
	keys := texts(len(starts))
	for i := range starts {
		keys.text(starts[i].Key)
	}
	b := c.batch()
	b.queue("clock")
	b.queue("start_lookup", keys.value())
	r := b.send(ctx)
	var now collation.Micros
	r.each(func(v row) error { now = collation.Micros(v.int(0)); return nil })
	holders := make(map[string]*holder)
	r.each(func(v row) error {
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
		holders[starts[v.int(0)-1].Key] = h
		return nil
	})
	return now, holders, r.close()
}

// started is the answer for a key that exists (1.11).
func started(in *store.Start, h *holder) store.Started {
	return store.Started{Job: h.id, Err: &store.AlreadyStartedError{
		Job: h.id, Key: in.Key, SameFlow: h.flow.Name == in.Flow.Name, SameInput: bytes.Equal(h.input, in.Input),
	}}
}

func (s *Store) incept(in *store.Start, generation int64, now collation.Micros, mode collation.Mode) (store.Chained, *store.Outgoing) {
	p := collation.Incept(collation.Inception{
		Space: s.cfg.Space, Key: in.Key, Generation: generation, Flow: in.Flow, Trigger: in.Trigger,
		Input: in.Input, Trace: in.Trace, Now: now, Publish: in.Publish,
	}, mode)
	job := collation.Job{ID: p.Job, Space: s.cfg.Space, Generation: generation}
	return store.Chain(&job, p), &store.Outgoing{
		Row: p.Insert[0], JobKey: in.Key, Generation: generation, Flow: in.Flow, Trace: in.Trace,
	}
}

// begin writes the inceptions and commits them under a marker of their own.
func (s *Store) begin(ctx context.Context, c *conn, fresh []store.Chained) error {
	w, err := merge(fresh)
	if err != nil {
		return fmt.Errorf("postgres: start: %w: %w", store.ErrRejected, err)
	}
	w.jobs = nil // write_jobs_new inserts what write_jobs would move
	return s.conclude(ctx, c, func(b *batch) {
		queueInceptions(b, fresh)
		w.queue(b)
	})
}

// abandon rolls the connection's transaction back. Where even that fails the
// pool drops the connection, since it is in a transaction.
func abandon(ctx context.Context, c *conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = c.query(ctx, "rollback", nil)
}

func queueInceptions(b *batch, fresh []store.Chained) {
	n := len(fresh)
	id, key, generation, name, version, digest := uuids(n), texts(n), ints(n), texts(n), texts(n), byteas(n)
	trigger, hash, at, trace := texts(n), byteas(n), ints(n), texts(n)
	for i := range fresh {
		e := fresh[i].Plan.Entry
		id.uuid(e.Job)
		key.text(e.Key)
		generation.int(e.Generation)
		name.text(e.Flow.Name)
		version.text(e.Flow.Version)
		digest.bytes(e.Flow.Digest[:])
		trigger.text(e.Activity)
		hash.bytes(fresh[i].Hash[:])
		at.int(e.Time)
		trace.text(e.Trace)
	}
	b.queue("write_jobs_new", id.value(), key.value(), generation.value(), name.value(), version.value(),
		digest.value(), trigger.value(), hash.value(), at.value(), trace.value())
}
