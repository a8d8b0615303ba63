package spans

import (
	"encoding/binary"
	"strings"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// effect adds an entry of an effect chain. An effect begins with its first entry and ends with its
// outcome. A run that takes it over says so, and
// may begin it again.
func (b *Builder) effect(e *journal.Entry) {
	f := e.Effect
	if f == nil {
		return
	}
	of := effectKey{e.Chain, f.Key}
	x, open := b.effects[of]
	if e.Kind == journal.KindEffectStarted {
		if open {
			b.end(x.span, e.Time, view.Attribute{Key: "quipu.taken_over", Number: 1})
		}
		x = running{b.begun(e), f.Fence}
		b.effects[of] = x
		if f.Class == "undo" { // it only registers a compensation
			b.end(x.span, e.Time)
		}
		return
	}
	if !open {
		x = running{b.begun(e), f.Fence}
	}
	delete(b.effects, of)
	s := &b.tree.Spans[x.span]
	if s.End != 0 {
		return
	}
	s.Failure = view.FailureOf(f.Error)
	if f.Fence > x.fence { // another run found it begun
		s.Attributes = append(s.Attributes, view.Attribute{Key: "quipu.taken_over", Number: 1})
	}
	b.end(x.span, e.Time)
}

// running is an effect that has begun, under a fence.
type running struct {
	span  int
	fence int64
}

// begun begins the span of an effect.
func (b *Builder) begun(e *journal.Entry) int {
	f := e.Effect
	name, _, _ := strings.Cut(f.Name, "[") // the rest is its key
	s := view.Span{
		ID: span("effect", e.Chain[:], binary.BigEndian.AppendUint64(nil, uint64(e.Seq))), Parent: b.attempted(e),
		Part: PartEffect, About: name, Kind: view.Client, Start: e.Time,
		Attributes: texts("quipu.effect", f.Key.String(), "quipu.class", f.Class, "quipu.writer", e.Writer),
	}
	s.Attributes = append(s.Attributes, numbers("quipu.fence", f.Fence)...)
	if f.Late {
		s.Attributes = append(s.Attributes, view.Attribute{Key: "quipu.late", Number: 1})
	}
	return b.begin(s)
}

// attempted is the attempt in which an effect ran, or its activity if that attempt had not begun by
// the effect's clock: a promoted server may be behind.
func (b *Builder) attempted(e *journal.Entry) view.SpanID {
	r := b.requests[e.Chain]
	if r == nil {
		return b.id(b.job)
	}
	b.turn(e.Chain, r, e.Time)
	id := OfAttempt(e.Chain, e.Effect.Turn)
	if began, ok := b.attempts[id]; ok && began <= e.Time {
		return id
	}
	return b.parent(r.place)
}
