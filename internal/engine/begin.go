package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// callStart names the calls of Start.
const callStart = "start"

// MaxStarts bounds the jobs of one call of Start.
const MaxStarts = 500

// start is one job to begin. It reads who has its key, but only after its inception was lost to
// another. It decides on the inception and the first steps of the trigger. It writes the job,
// and what those steps dispatch (1.11, W9).
type start struct {
	store.Start
	flow *flow.Flow // compiled
	call *call      // nil in a caller's transaction
	held bool       // somebody seems to have the key: look it up
	out  store.Started
}

// Start begins jobs, each as a call of its own: they share transactions with other work, and
// one that is refused is refused alone. The results are in the order of starts; equal keys are
// one job. Errors in the results: store.ErrNotFound: the flow is not deployed.
// *store.AlreadyStartedError: a job has the key. ErrFlowMoved: the start is Active and its
// version is no longer the active one. store.ErrUnavailable: nothing was begun.
// store.ErrUnknown: the job may have begun, and the call may be repeated.
func (c *Committer) Start(ctx context.Context, starts []store.Start) []store.Started {
	all, calls := make([]*start, len(starts)), make([]*call, 0, len(starts))
	out := make([]store.Started, len(starts))
	for i := range starts {
		s := &start{Start: starts[i]}
		if s.flow, out[i].Err = c.flows.Get(ctx, s.Flow); out[i].Err != nil {
			continue
		}
		s.call = &call{name: callStart, of: ofKey(s.Key), wants: s.want, decides: s.decide, lost: s.lose}
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

// ErrFlowMoved says that another version of the flow became active while a job was about to
// begin. Nothing was begun; resolve the flow again.
var ErrFlowMoved = errors.New("another version of the flow is the active one by now")

func (s *start) want() []store.Want {
	if !s.held {
		return nil // the key is mostly free: the inception itself finds out
	}
	return []store.Want{{Key: s.Key}}
}

// lose learns what the inception was lost to.
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
	held := b.keyHolder(s.Key)
	p := collation.Begin(b.inception(&s.Start, s.flow), held, b.mode)
	if p == nil {
		s.out = taken(&s.Start, held)
		return nil
	}
	s.out = store.Started{Job: p.Job}
	b.begin(p, s.flow)
	return nil
}

// inception is what a start asks for.
func (b *batch) inception(s *store.Start, f *flow.Flow) collation.Inception {
	in := s.Inception(b.cfg.Space, b.loaded.Now)
	in.Publish, in.Keep = b.sends, f.Expire()
	return in
}

// keyHolder is what has a key, as far as this process knows. A key that was not looked up is
// assumed to be free, and to have ended at the floor of generations that this process remembers
// (W11). The inception itself finds out whether that is so.
func (b *batch) keyHolder(key string) *collation.Holder {
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

// taken is the answer when a job has the key (1.11).
func taken(s *store.Start, h *collation.Holder) store.Started {
	return store.Started{Job: h.ID, Err: &store.AlreadyStartedError{
		Job: h.ID, Key: s.Key, Flow: h.Flow, SameFlow: h.Flow.Name == s.Flow.Name,
		SameInput: bytes.Equal(h.Input, s.Input),
	}}
}

// begin adds an inception to the batch, and the job's first steps if they fold (C11). It
// returns the plan of the steps; nil: the start message is sent instead.
func (b *batch) begin(p *collation.Plan, f *flow.Flow) *collation.Plan {
	e := p.Entry
	b.begun[e.Key] = &collation.Holder{
		ID: e.Job, Generation: e.Generation, State: journal.JobOpen, Flow: *e.Flow, Input: e.Input,
	}
	header := collation.Job{ID: e.Job, Space: e.Space, Generation: e.Generation}
	b.plans = append(b.plans, store.Chain(&header, p))
	st := collation.Born(p, f)
	st.Job.Head = header.Head
	b.loaded.States[p.Job] = st
	first := foldStart(st, b.mode)
	if first == nil {
		return nil
	}
	b.apply(st, first)
	return first
}

// foldStart is collation.FoldStart. After a panic it returns nil: the start's own message then
// quarantines the job (J1).
func foldStart(s *collation.State, mode collation.Mode) (p *collation.Plan) {
	defer func() {
		if recover() != nil {
			p = nil
		}
	}()
	return collation.FoldStart(s, mode)
}

// StartTx begins a job inside the caller's transaction tx, the store's handle (E17). The job
// begins when tx commits. Its row is due at once, and the sweeper finds it after the commit. If
// another transaction is just starting the key, StartTx waits for it. Errors: those of Joiner,
// ErrFlowMoved, or store.ErrNotFound: the flow is not deployed.
func (c *Committer) StartTx(ctx context.Context, tx any, in store.Start) (store.Started, error) {
	compiled, err := c.flows.Get(ctx, in.Flow)
	if err != nil {
		return store.Started{}, err
	}
	s := &start{Start: in, flow: compiled, held: true}
	err = c.cfg.Store.Join(ctx, tx, func(t store.Tx) error {
		loaded, err := t.Load(ctx, s.want(), true)
		if err != nil {
			return err
		}
		b := c.joined(loaded)
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
