package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// callStart names the calls of Start.
const callStart = "start"

// MaxStarts bounds the jobs of one call of Start.
const MaxStarts = 500

// start is one job to begin. It reads: who has its key, but only once an inception
// was lost to another; it decides: inception, and the first steps of its trigger;
// it writes the job, and what those dispatch (1.11, W9).
type start struct {
	store.Start
	flow *flow.Flow // compiled
	call *call      // nil in a transaction of the caller's
	held bool       // somebody seems to have the key: look
	out  store.Started
}

// Start begins jobs, each a call of its own: they share their transaction with
// whatever else is to be committed, and one that is refused is refused alone. The
// results are in the order of the starts; equal keys are one job. Errors are those of the
// results: store.ErrNotFound: the flow is not deployed; *store.AlreadyStartedError where
// a job has the key; ErrFlowMoved where the version of an Active start is not the active
// one any more; store.ErrUnavailable: nothing was begun; store.ErrUnknown: it may
// have been, and the call may be repeated.
func (c *Committer) Start(ctx context.Context, starts []store.Start) []store.Started {
	all, calls := make([]*start, len(starts)), make([]*call, 0, len(starts))
	out := make([]store.Started, len(starts))
	for i := range starts {
		s := &start{Start: starts[i]}
		if s.flow, out[i].Err = c.flows.Get(ctx, s.Flow.Name, s.Flow.Version); out[i].Err != nil {
			continue
		}
		s.call = &call{name: callStart, want: s.want, decide: s.decide, lost: s.lose}
		all[i], calls = s, append(calls, s.call)
	}
	c.do(ctx, calls...)
	for i, s := range all {
		if s == nil {
			continue
		}
		if out[i].Err = s.call.err; out[i].Err == nil {
			out[i] = s.out
		}
	}
	return out
}

// ErrFlowMoved says that another version of a flow has become the active one while a
// job was about to begin on it: nothing was begun; resolve the flow again.
var ErrFlowMoved = errors.New("another version of the flow is the active one by now")

func (s *start) want() []store.Want {
	if !s.held {
		return nil // mostly the key is free: the inception itself finds out
	}
	return []store.Want{{Key: s.Key}}
}

// lose hears what the inception was lost to.
func (s *start) lose(e *store.LostError) {
	for _, k := range e.Keys {
		s.held = s.held || k == s.Key
	}
	for _, f := range e.Flows {
		if s.Active && f == s.Flow.Name {
			s.out.Err = ErrFlowMoved
		}
	}
}

func (s *start) decide(b *batch) error {
	if errors.Is(s.out.Err, ErrFlowMoved) {
		return s.out.Err
	}
	held := b.holder(s.Key)
	p := collation.Begin(s.inception(b), held, b.mode)
	if p == nil {
		s.out = taken(&s.Start, held)
		return nil
	}
	s.out = store.Started{Job: p.Job}
	if first := b.begin(p, s.flow); first != nil {
		b.folded = append(b.folded, first)
	}
	return nil
}

func (s *start) inception(b *batch) collation.Inception {
	in := s.Start.Inception(b.space, b.loaded.Now)
	in.Publish, in.Keep = b.sends, s.flow.Expire()
	return in
}

// holder is what has a key, as far as is known: of a key that was not looked up the
// inception itself finds out, so that it is guessed to have ended in the generation of
// the floor, which this process remembers (W11).
func (b *batch) holder(key string) *collation.Holder {
	held := b.loaded.Holders[key]
	if twin := b.begun[key]; twin != nil {
		held = twin
	}
	switch floor := b.floor.Load(); {
	case held == nil && floor > 0:
		held = &collation.Holder{Generation: floor, State: journal.JobExpired}
	case held != nil && held.ID.IsZero() && held.Generation > floor:
		b.floor.CompareAndSwap(floor, held.Generation)
	}
	return held
}

// taken is the answer for a key that a job has (1.11).
func taken(s *store.Start, h *collation.Holder) store.Started {
	return store.Started{Job: h.ID, Err: &store.AlreadyStartedError{
		Job: h.ID, Key: s.Key, Flow: h.Flow, SameFlow: h.Flow.Name == s.Flow.Name, SameInput: bytes.Equal(h.Input, s.Input),
	}}
}

// begin adds an inception to the batch, with the first steps of the job where they
// fold (C11). It returns the plan of those, nil where the start's message goes its
// own way.
func (b *batch) begin(p *collation.Plan, f *flow.Flow) *collation.Plan {
	e := p.Entry
	b.begun[e.Key] = &collation.Holder{ID: e.Job, Generation: e.Generation, State: journal.JobOpen, Flow: *e.Flow, Input: e.Input}
	header := collation.Job{ID: e.Job, Space: e.Space, Generation: e.Generation}
	b.plans = append(b.plans, store.Chain(&header, p))
	st := collation.Born(p, f)
	st.Job.Head = header.Head
	b.loaded.States[p.Job] = st
	first := foldStart(st, b.mode)
	if first == nil {
		return nil
	}
	b.take(first, st.Now)
	b.plans = append(b.plans, store.Chain(&st.Job, first))
	st.Apply(first)
	return first
}

// foldStart is collation.FoldStart. A panic in it is left to the start's own
// message, which quarantines the job (J1).
func foldStart(s *collation.State, mode collation.Mode) (p *collation.Plan) {
	defer func() {
		if recover() != nil {
			p = nil
		}
	}()
	return collation.FoldStart(s, mode)
}

// StartTx begins a job inside the caller's transaction tx, the store's handle (E17):
// it begins when that commits, or never was. Its row is due at once and found by the
// sweeper after the commit. A start of a key that another transaction is just
// starting waits for that one. The error is that of Joiner, ErrFlowMoved, or
// store.ErrNotFound: the flow is not deployed.
func (c *Committer) StartTx(ctx context.Context, tx any, in store.Start) (store.Started, error) {
	compiled, err := c.flows.Get(ctx, in.Flow.Name, in.Flow.Version)
	if err != nil {
		return store.Started{}, err
	}
	s := &start{Start: in, flow: compiled, held: true}
	err = c.cfg.Store.Join(ctx, tx, func(t store.Tx) error {
		loaded, err := t.Load(ctx, s.want(), true)
		if err != nil {
			return err
		}
		b := c.batch(loaded, false)
		if err := s.decide(b); err != nil || len(b.plans) == 0 {
			return err
		}
		return t.Commit(ctx, b.plans)
	})
	if lost, ok := errors.AsType[*store.LostError](err); ok && len(lost.Flows) > 0 {
		c.flows.Forget(in.Flow.Name)
		return store.Started{}, fmt.Errorf("%w: %w", ErrFlowMoved, err)
	}
	if err != nil {
		return store.Started{}, err
	}
	return s.out, nil
}
