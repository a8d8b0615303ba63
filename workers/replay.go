package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// ReplayRequest is a request whose handler is replayed against its record.
type ReplayRequest struct {
	// Call is what Info shows the handler. Topic selects the handler; Attempt and
	// Attempts say, as in a run, whether a failed attempt is the last. Effect keys are
	// made of the place: space, job, generation, version, activity, DAD, element.
	Call  Call
	Input json.RawMessage
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
func Replay(ctx context.Context, reg *Registry, q ReplayRequest) (*Replayed, error) {
	h, err := reg.of(q.Call.Topic)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if q.Call.Flow == flow.UndoName {
		return nil, fmt.Errorf("replay: a request of %s runs the compensations of another request: replay that one", flow.UndoName)
	}
	job, err := journal.ParseJobID(q.Call.Job)
	if err != nil {
		return nil, fmt.Errorf("replay: job: %w", err)
	}
	request, err := journal.ParseGUID(q.Call.Request)
	if err != nil {
		return nil, fmt.Errorf("replay: request: %w", err)
	}
	cfg := effect.Config{
		Store: record{effects: q.Effects, pauses: q.Pauses}, Lease: store.Lease{Job: job, Request: request, Turn: q.Call.Turn},
		Held: true, Replay: true, Frozen: true, Input: q.Input, Read: readError, Refusal: refusal,
		Identity: effect.Identity{
			Space: q.Call.Space, Job: job, Generation: q.Call.Generation, Version: q.Call.Version,
			Activity: q.Call.Activity, DAD: q.Call.DAD, Element: q.Call.Element,
		},
	}
	if err := rooted(&cfg.Identity, q.Call.Root, q.Call.RootGeneration); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	ctx = context.WithValue(ctx, loggerKey{}, slog.New(slog.DiscardHandler)) // the runs before have logged it all
	f := &function{h: h, req: q.Call.request(), in: q.Input, frozen: true}
	if h.durable {
		f.durable = durable.New(durable.Config{Config: cfg, Ended: q.Ended})
		f.session = f.durable.Session()
		return f.replayed(f.run(ctx)), nil
	}
	f.session = effect.NewSession(cfg)
	return f.replayed(f.handler(ctx)), nil
}

// handler runs a handler that is no durable function.
func (f *function) handler(ctx context.Context) ending {
	ctx = context.WithValue(effect.With(ctx, f.session), callKey{}, f.req)
	var e ending
	e.err = durable.Alone(ctx, func(ctx context.Context) (err error) {
		e.out, err = f.h.invoke(ctx, f.in)
		return err
	})
	f.raw, e.err = e.err, readError(e.err)
	e.response = success(f.h.topic, e.out)
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
