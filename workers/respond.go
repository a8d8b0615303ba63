package workers

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/fault"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/wire"
)

// respond sends the response to the job's lane; the request is acked when the bus
// has it, and comes again when it has not (E7). A response has no row: its GUID is
// derived, so that sending it twice is harmless.
func (r *run) respond(response *wire.Response) {
	if !r.called.IsZero() {
		response.BeganUS, response.RanUS = r.called.UnixMicro(), time.Since(r.called).Microseconds()
	}
	if len(response.Output) > r.rt.inline {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.rt.base), storeWait)
		defer cancel()
		digest := journal.Digest(sha256.Sum256(response.Output))
		if err := r.rt.cfg.Store.PutPayload(ctx, r.job, digest, response.Output); err != nil {
			r.handBack("store an output over the size of a message", err)
			return
		}
		response.Output, response.Ref = nil, digest.String()
	}
	r.response[0] = r.message(response)
	for response.Error != nil && errors.Is(r.response[0].Validate(r.rt.cfg.Bus.MaxPayload()), transport.ErrTooLarge) && shrink(response.Error) {
		r.response[0] = r.message(response)
	}
	fault.At(fault.K9, r.h.topic)
	r.pulse.answering()
	// Not the base context: what a drained run answers still goes out. The bound
	// keeps runs from piling up behind a bus without room (T11).
	ctx, cancel := context.WithTimeout(context.Background(), r.rt.cfg.ResponseWait)
	defer cancel()
	_ = r.rt.cfg.Bus.Send(ctx, r.response[:], r.sent) // sent is told the outcome in any case
}

// message is the message with the response.
func (r *run) message(response *wire.Response) transport.Message {
	asked := &r.d.Message().Header
	return transport.Message{
		To: transport.ToLane(wire.LaneOf(r.job, r.rt.cfg.Lanes)),
		Header: transport.Header{
			GUID: collation.ResponseGUID(r.request, r.req.Turn), Turn: r.req.Turn,
			// Publication and time are the request's. A re-sent request's answer is
			// then no duplicate of one that was lost, and the look before a re-send
			// finds the answer on its way (T2).
			Publication: asked.Publication, PublishedAt: asked.PublishedAt, Epoch: asked.Epoch,
			Traceparent: r.trace(),
		},
		// The request is acked when the response is out: by then it must outlast this
		// process. Of one that the run had from its beginning on the row says so (W8).
		ByBus: !r.taken,
		Body: wire.Encode(&wire.Hint{
			Kind: journal.MessageResponse, Job: r.req.Job, Row: r.req.Request, Activity: r.req.Activity, DAD: r.req.DAD,
			Turn: r.req.Turn, Flow: r.req.Flow, Version: r.req.Version, Response: response,
		}),
	}
}

// shrink makes an error smaller, where a bus of small messages would keep its
// request from ever being answered (T4, C10): its stack goes first, then the end of
// a long message; its data, which flows may read, only when nothing else helps, and
// then the message says so. It reports false when nothing is left.
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

// half is the first half of a text, at most.
func half(s string) string { return strings.ToValidUTF8(s[:len(s)/2], "") }

// sent is the bus's word on the response.
func (r *run) sent(_ int, err error) {
	const op = "publish the response"
	switch {
	case err == nil:
		r.settle(r.d.Ack)
	case errors.Is(err, transport.ErrTooLarge), errors.Is(err, transport.ErrInvalid):
		go r.unheard(op, err)
	default:
		go r.handBack(op, err) // not in the bus's callback: it asks the store
	}
}
