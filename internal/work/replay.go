package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// ReplayRequest is a request whose handler is replayed against its record.
type ReplayRequest struct {
	// Request is what the handler gets. Topic selects the handler; Attempt and
	// Attempts say, as in a run, whether a failed attempt is the last. Effect keys are
	// made of the place: space, job, generation, version, activity, DAD, element.
	Request wire.Request
	// Effects and Pauses are the record, as store.Worker lists them.
	Effects []store.EffectRow
	Pauses  []store.Pause
	// Ended says that the request has its final answer, so its record is complete: an
	// effect whose last outcome is "not done" is not called again.
	Ended bool
}

// ReplayEnd says how a replay ended.
type ReplayEnd string

const (
	// ReplayReturned: the handler returned a value.
	ReplayReturned ReplayEnd = "returned"
	// ReplayFailed: the handler returned an error, panicked, or was parked.
	ReplayFailed ReplayEnd = "failed"
	// ReplaySuspended: the handler waits for something that has not come.
	ReplaySuspended ReplayEnd = "suspended"
	// ReplayUnrecorded: the handler reached the end of the record, at a call that a run
	// would now carry out.
	ReplayUnrecorded ReplayEnd = "unrecorded"
	// ReplayDiverged: the handler differs from the recorded path.
	ReplayDiverged ReplayEnd = "diverged"
)

// Replayed is the outcome of a replay.
type Replayed struct {
	End ReplayEnd
	// Response is what a run would answer; nil at ReplayUnrecorded.
	Response *wire.Response
	// Err is the handler's error at ReplayFailed, and an *effects.NondeterminismError
	// with the first difference at ReplayDiverged. A difference may be a recorded call
	// that was not made.
	Err error
	// Waits are what the handler waits for, at ReplaySuspended.
	Waits []wire.Pause
	// Unrecorded is the first call without a recorded outcome, at ReplayUnrecorded. If
	// Undoing, it is a call of a compensation.
	Unrecorded *effect.Unrecorded
	// Undoing says that the function has failed for good and that its undoing is
	// recorded.
	Undoing bool
}

// Replay runs a handler of the registry against a record, without a store, a bus, or
// anything outside: nothing is written, and no body of an effect is called. It is a run
// that stops at the first call without a recorded outcome; parallel branches go as far as
// they can. Other handlers than durable functions can be replayed too: Do returns an
// error where the record ends.
//
// Errors: an unknown topic, a bad id, a request of the flow of compensations. The
// handler's context derives from ctx.
func Replay(ctx context.Context, reg *workers.Registry, q ReplayRequest) (*Replayed, error) {
	h, err := handlerOf(reg, q.Request.Topic)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if q.Request.Flow == flow.UndoName {
		return nil, fmt.Errorf("replay: a request of %s runs the compensations of another request: replay that one", flow.UndoName)
	}
	job, err := journal.ParseJobID(q.Request.Job)
	if err != nil {
		return nil, fmt.Errorf("replay: job: %w", err)
	}
	request, err := journal.ParseGUID(q.Request.Request)
	if err != nil {
		return nil, fmt.Errorf("replay: request: %w", err)
	}
	cfg := effect.Config{
		Store: record{effects: q.Effects, pauses: q.Pauses},
		Lease: store.Lease{Job: job, Request: request, Turn: q.Request.Turn},
		Held:  true, Replay: true, Frozen: true, Input: q.Request.Input, Read: readError, Refusal: refusal,
		Identity: effect.Identity{
			Space: q.Request.Space, Job: job, Generation: q.Request.Generation, Version: q.Request.Version,
			Activity: q.Request.Activity, DAD: q.Request.DAD, Element: q.Request.Element,
		},
	}
	if err := rooted(&cfg.Identity, q.Request.Root, q.Request.RootGeneration); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	ctx = port.WithLog(ctx, slog.New(slog.DiscardHandler)) // the runs before have logged it all
	f := &function{h: h, req: &q.Request, in: q.Request.Input, frozen: true}
	if h.Durable {
		f.durable = durable.New(durable.Config{Config: cfg, Ended: q.Ended})
		f.session = f.durable.Session()
		return f.replayed(f.run(ctx)), nil
	}
	f.session = effect.NewSession(cfg)
	return f.replayed(f.handler(ctx)), nil
}

// handlerOf is the registry's handler of a topic.
func handlerOf(reg *workers.Registry, topic string) (*port.Handler, error) {
	all, _, err := port.Registered(reg)
	if err != nil {
		return nil, err
	}
	for _, h := range all {
		if h.Topic == topic {
			return h, nil
		}
	}
	return nil, fmt.Errorf("topic %.80q has no handler in the registry", topic)
}

// handler runs a handler that is no durable function.
func (f *function) handler(ctx context.Context) ending {
	ctx = port.WithRequest(effect.With(ctx, f.session), f.req)
	var e ending
	e.err = durable.Alone(ctx, func(ctx context.Context) (err error) {
		e.out, err = f.h.Call(ctx, f.in)
		return err
	})
	f.raw, e.err = e.err, readError(e.err)
	e.response = success(f.h.Topic, e.out)
	if e.err != nil {
		e.response = failure(e.err, false)
	}
	e.response = overruled(e.response, e.err, f.session.Verdict(), false)
	return e
}

// replayed classifies the end of the run.
func (f *function) replayed(e ending) *Replayed {
	out := &Replayed{Response: e.response, Err: e.err}
	if f.durable != nil {
		_, out.Undoing = f.durable.Undoing()
	}
	if f.raw != nil {
		out.Err = f.raw
	}
	if e.err == nil && e.response.Error != nil { // an effect's error that the handler hid
		out.Err = f.session.Verdict()
	}
	differs, diverged := errors.AsType[*effects.NondeterminismError](f.session.Verdict())
	if !diverged {
		differs, diverged = errors.AsType[*effects.NondeterminismError](e.err)
	}
	if diverged {
		out.Err = differs
	}
	switch {
	case diverged:
		out.End = ReplayDiverged
	case f.session.Stopped() != nil:
		out.End, out.Unrecorded, out.Response, out.Err = ReplayUnrecorded, f.session.Stopped(), nil, nil
	case e.response.Kind == journal.ResponseSuspended:
		out.End, out.Waits = ReplaySuspended, e.response.Pauses
	case e.response.Error != nil:
		out.End = ReplayFailed
	default:
		out.End = ReplayReturned
	}
	return out
}

// record is a store.Worker that only reads what is recorded.
type record struct {
	store.Worker
	effects []store.EffectRow
	pauses  []store.Pause
}

// Effects implements store.Worker.
func (r record) Effects(context.Context, journal.JobID, journal.GUID) ([]store.EffectRow, error) {
	return r.effects, nil
}

// Pauses implements store.Worker.
func (r record) Pauses(context.Context, journal.JobID, journal.GUID) ([]store.Pause, error) {
	return r.pauses, nil
}
