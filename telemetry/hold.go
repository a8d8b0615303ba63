package telemetry

import (
	"context"
	"slices"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// MaxHeld bounds the ended spans that one attempt holds back. An attempt with more drops
// all of them, because a part would be a tree with holes, and reports their number in
// quipu.spans.dropped.
const MaxHeld = 1024

type heldKey struct{}

// held are the spans that a handler opened in an unfinished attempt. If they were
// exported at once, they would be orphans after the process dies before its attempt is
// exported.
type held struct {
	trace trace.TraceID

	mu      sync.Mutex
	open    map[trace.SpanID]struct{}
	ended   []sdktrace.ReadOnlySpan
	dropped int
	done    bool
}

// holder is the span processor between the provider and the exporter.
type holder struct {
	next sdktrace.SpanProcessor
	open sync.Map // trace.SpanID → *held, for spans that began in an open attempt
}

// OnStart notes the attempt in which a span begins.
func (h *holder) OnStart(parent context.Context, s sdktrace.ReadWriteSpan) {
	if at, _ := parent.Value(heldKey{}).(*held); at != nil && at.trace == s.SpanContext().TraceID() {
		if id := s.SpanContext().SpanID(); at.begin(id) {
			h.open.Store(id, at)
		}
	}
	h.next.OnStart(parent, s)
}

// OnEnd holds back the spans of an open attempt and passes on all others.
func (h *holder) OnEnd(s sdktrace.ReadOnlySpan) {
	at, ok := h.open.LoadAndDelete(s.SpanContext().SpanID())
	if ok && at.(*held).take(s) {
		return
	}
	h.next.OnEnd(s)
}

// release passes on the held spans, after the attempt's own span. Parents end after their
// children, so the last span to end goes first.
func (h *holder) release(at *held) {
	at.mu.Lock()
	at.done = true
	ended, open := at.ended, at.open
	at.ended, at.open = nil, nil
	at.mu.Unlock()
	for id := range open {
		h.open.Delete(id) // a span that still runs is passed on when it ends
	}
	for _, s := range slices.Backward(ended) {
		h.next.OnEnd(s)
	}
}

// Shutdown implements sdktrace.SpanProcessor.
func (h *holder) Shutdown(ctx context.Context) error { return h.next.Shutdown(ctx) }

// ForceFlush implements sdktrace.SpanProcessor. Held spans stay held.
func (h *holder) ForceFlush(ctx context.Context) error { return h.next.ForceFlush(ctx) }

// begin says whether the span is to be held back when it ends.
func (a *held) begin(id trace.SpanID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return false
	}
	if a.open == nil {
		a.open = map[trace.SpanID]struct{}{}
	}
	a.open[id] = struct{}{}
	return true
}

// take holds s until release; false if release was called already.
func (a *held) take(s sdktrace.ReadOnlySpan) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return false
	}
	delete(a.open, s.SpanContext().SpanID())
	switch {
	case a.dropped > 0:
		a.dropped++
	case len(a.ended) == MaxHeld:
		a.ended, a.dropped = nil, MaxHeld+1
	default:
		a.ended = append(a.ended, s)
	}
	return true
}

// lost is the number of spans that were dropped (MaxHeld).
func (a *held) lost() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dropped
}
