package observer

import (
	"context"

	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Guard is o as the runtime calls it: a call of it that panics does nothing, and lost is told which
// one and with what. An observer is called everywhere, also where a panic would end the process.
func Guard(o Observer, lost func(call, panicked string)) Observer {
	if _, nop := o.(Nop); nop {
		return o
	}
	return &guard{o, lost}
}

type guard struct {
	o    Observer
	lost func(call, panicked string)
}

func (g *guard) try(call string, fn func()) {
	if panicked, ok := usercode.Try(fn); !ok {
		g.lost(call, panicked)
	}
}

// Trace implements Observer.
func (g *guard) Trace(ctx context.Context) (parent string) {
	g.try("Trace", func() { parent = g.o.Trace(ctx) })
	return parent
}

// Under implements Observer.
func (g *guard) Under(m Message, turn int) (parent string) {
	g.try("Under", func() { parent = g.o.Under(m, turn) })
	return parent
}

// Told implements Observer.
func (g *guard) Told(m Message, spans ...Span) { g.try("Told", func() { g.o.Told(m, spans...) }) }

// Attempt implements Observer.
func (g *guard) Attempt(ctx context.Context, traceparent string, s Subject) (context.Context, func(error, []Span)) {
	within, end := ctx, func(error, []Span) {}
	g.try("Attempt", func() {
		if c, e := g.o.Attempt(ctx, traceparent, s); c != nil && e != nil {
			within, end = c, e
		}
	})
	return within, func(err error, effects []Span) { g.try("Attempt's end", func() { end(err, effects) }) }
}

// Traces implements Observer.
func (g *guard) Traces() (are bool) {
	g.try("Traces", func() { are = g.o.Traces() })
	return are
}

// Sampled implements Observer.
func (g *guard) Sampled(job journal.JobID, traceparent string) (is bool) {
	g.try("Sampled", func() { is = g.o.Sampled(job, traceparent) })
	return is
}

// Trees implements Observer.
func (g *guard) Trees(ctx context.Context, trees ...*view.Tree) (err error) {
	g.try("Trees", func() { err = g.o.Trees(ctx, trees...) })
	return err
}

// Count implements Observer.
func (g *guard) Count(metric string, n int64, attributes ...string) {
	g.try("Count", func() { g.o.Count(metric, n, attributes...) })
}

// Observe implements Observer.
func (g *guard) Observe(metric string, value float64, attributes ...string) {
	g.try("Observe", func() { g.o.Observe(metric, value, attributes...) })
}

// Ask implements Observer.
func (g *guard) Ask(source Source) func() {
	forget := func() {}
	g.try("Ask", func() {
		if f := g.o.Ask(source); f != nil {
			forget = f
		}
	})
	return func() { g.try("Ask's end", forget) }
}
