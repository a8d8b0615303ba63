package work

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/fault"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// together gives the engine of this process the response of a run that has succeeded, with the outcome of
// its last effect, if that is all that is not recorded (J8). Should they not be recorded together, it
// concludes the run as if this had not been tried.
func (r *run) together(e ending) bool {
	if r.rt.beside == nil || r.order != nil || e.err != nil || r.session.Verdict() != nil ||
		context.Cause(r.ctx) != nil {
		return false
	}
	response := e.response
	if response == nil {
		response = success(r.h.Topic, e.out)
	}
	if response.Kind != journal.ResponseTerminal || response.Error != nil || len(response.Output) > r.rt.inline {
		return false
	}
	x := r.session.TakeLast(func(err error) {
		if err != nil {
			go r.apart(e) // it waits for the store
			return
		}
		r.settle(r.d.Ack)
	})
	if x == nil {
		return false
	}
	if r.cause != nil {
		if err := r.cause.Wait(context.Background()); err != nil { // it comes with the end of a commit
			x.Told(store.EffectRow{}, err)
			return true
		}
	}
	r.mark(response)
	r.finished(outcome(response), nil, response.Code)
	r.response[0] = r.message(response)
	if !r.rt.beside.Answer(&r.response[0], x) {
		x.Told(store.EffectRow{}, errAlone)
	}
	return true
}

// errAlone says that no engine of this process takes the response now.
var errAlone = errors.New("no engine of this process serves the lane, or it has no room")

// mark notes in a response what its run knows of itself. With that it is made.
func (r *run) mark(response *wire.Response) {
	fault.At(fault.K9, r.h.Topic)
	response.Moved = r.session.Moved() || r.taken && r.d.Message().Holder == ""
	if !r.called.IsZero() {
		response.BeganUS, response.RanUS = r.called.UnixMicro(), time.Since(r.called).Microseconds()
	}
}

// respond sends the response to the job's lane. The request is acked once the bus has the
// response; otherwise the request comes again (E7). A response has no row: its GUID is
// derived, so sending it twice is harmless.
func (r *run) respond(response *wire.Response) {
	r.mark(response)
	if len(response.Output) > r.rt.inline {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.rt.base), storeWait)
		defer cancel()
		digest := journal.Digest(sha256.Sum256(response.Output))
		if err := r.store().PutPayload(ctx, r.job, digest, response.Output); err != nil {
			if errors.Is(err, early.ErrUncommitted) {
				r.drop()
				return
			}
			r.handBack("store an output over the size of a message", err)
			return
		}
		response.Output, response.Ref = nil, digest.String()
	}
	r.response[0] = r.message(response)
	for response.Error != nil && errors.Is(r.response[0].Validate(r.rt.cfg.Bus.MaxPayload()), transport.ErrTooLarge) &&
		shrink(response.Error) {
		r.response[0] = r.message(response)
	}
	if !r.offer(response) {
		return
	}
	r.pulse.answering()
	// A fresh context, not the base: the answer of a drained run must still go out. The
	// bound keeps runs from piling up behind a bus without room (T11).
	ctx, cancel := context.WithTimeout(context.Background(), r.rt.cfg.ResponseWait)
	defer cancel()
	_ = r.rt.cfg.Bus.Send(ctx, r.response[:], r.sent) // sent is told the outcome in any case
}

func (r *run) message(response *wire.Response) transport.Message {
	asked := &r.d.Message().Header
	return transport.Message{
		To: transport.ToLane(wire.LaneOf(r.job, r.rt.cfg.Lanes)), Kind: journal.MessageResponse,
		Header: transport.Header{
			GUID: collation.ResponseGUID(r.request, r.req.Turn), Turn: r.req.Turn,
			// Publication and time are the request's. So the answer to a re-sent request
			// is no duplicate of a lost answer, and the look before a re-send finds an
			// answer that is under way (T2).
			Publication: asked.Publication, PublishedAt: asked.PublishedAt, Epoch: asked.Epoch,
			Traceparent: r.trace(), Topic: r.h.Topic,
		},
		// The request is acked once the response is out, so the response must outlast
		// this process. That is not needed where the run holds its row from the
		// beginning: the row says so (W8).
		ByBus: !r.taken,
		Body: wire.Encode(&wire.Hint{
			Kind: journal.MessageResponse, Job: r.req.Job, Row: r.req.Request, Activity: r.req.Activity, DAD: r.req.DAD,
			Turn: r.req.Turn, Flow: r.req.Flow, Version: r.req.Version, Response: response,
		}),
	}
}

// shrink makes an error smaller, because a bus of small messages could otherwise never
// carry the answer (T4, C10). The stack goes first, then the end of a long message. The
// data, which flows may read, goes last, and then the message says so. It reports false
// when nothing is left to cut.
func shrink(f *wire.Failure) bool {
	const enough = 512 // bytes of a message that says what happened
	switch {
	case f.Stack != "":
		f.Stack = half(f.Stack)
	case len(f.Message) > enough:
		f.Message = half(f.Message)
	case f.Data != nil:
		f.Data, f.Message = nil, f.Message+" (its data is left out: it does not fit into a message)"
	case f.Message != "":
		f.Message = half(f.Message)
	default:
		return false
	}
	return true
}

// half is the first half of a text, cut at a whole character.
func half(s string) string { return strings.ToValidUTF8(s[:len(s)/2], "") }

// sent receives the bus's outcome for the response.
func (r *run) sent(_ int, err error) {
	const op = "publish the response"
	switch {
	case err == nil:
		r.settle(r.d.Ack)
	case errors.Is(err, transport.ErrTooLarge), errors.Is(err, transport.ErrInvalid):
		go r.unheard(op, err)
	default:
		go r.handBack(op, err) // in a goroutine: it calls the store, and a callback of the bus must not block
	}
}
