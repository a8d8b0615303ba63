package telemetry

import (
	"context"
	"slices"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// MaxHeld bounds the ended spans that wait for the outermost one around them. More are sent as they
// end.
const MaxHeld = 1024

// holder is the span processor between the provider and the exporter. It holds back a span until the
// outermost span around it in this process has ended, whose parent the tree of a job has (O1). So a
// process that is killed leaves no span in a collector whose parent was not sent.
type holder struct {
	next  sdktrace.SpanProcessor
	under sync.Map // trace.SpanID → *held, of spans that have not ended
}

// held are the spans inside an outermost one.
type held struct {
	outer trace.SpanID

	mu    sync.Mutex
	ended []sdktrace.ReadOnlySpan
	done  bool
}

// OnStart notes inside which span another begins.
func (h *holder) OnStart(parent context.Context, s sdktrace.ReadWriteSpan) {
	id := s.SpanContext().SpanID()
	in := &held{outer: id}
	if p := s.Parent(); p.IsValid() && !p.IsRemote() {
		if around, ok := h.under.Load(p.SpanID()); ok {
			in = around.(*held)
		}
	}
	h.under.Store(id, in)
	h.next.OnStart(parent, s)
}

// OnEnd passes on an outermost span, and what was held inside it. Parents mostly end after their
// children, so the last one to end goes first.
func (h *holder) OnEnd(s sdktrace.ReadOnlySpan) {
	v, ok := h.under.LoadAndDelete(s.SpanContext().SpanID())
	if !ok {
		h.next.OnEnd(s)
		return
	}
	in := v.(*held)
	if in.take(s) {
		return
	}
	h.next.OnEnd(s)
	if in.outer != s.SpanContext().SpanID() {
		return
	}
	for _, inner := range in.release() {
		h.next.OnEnd(inner)
	}
}

// take holds s; false if it is to be passed on.
func (x *held) take(s sdktrace.ReadOnlySpan) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done || x.outer == s.SpanContext().SpanID() || len(x.ended) == MaxHeld {
		return false
	}
	x.ended = append(x.ended, s)
	return true
}

func (x *held) release() []sdktrace.ReadOnlySpan {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done = true
	slices.Reverse(x.ended)
	return x.ended
}

// Shutdown implements sdktrace.SpanProcessor.
func (h *holder) Shutdown(ctx context.Context) error { return h.next.Shutdown(ctx) }

// ForceFlush implements sdktrace.SpanProcessor. Held spans stay held.
func (h *holder) ForceFlush(ctx context.Context) error { return h.next.ForceFlush(ctx) }
