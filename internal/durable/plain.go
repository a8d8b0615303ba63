package durable

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
)

// These functions run a durable function outside a job (E14).

type plainKey struct{}

type signalsKey struct{}

type childrenKey struct{}

// Signals returns the payload of the next signal, or blocks until ctx ends.
type Signals = func(ctx context.Context, topic, key string) (any, error)

// Children returns the output of a child.
type Children = func(ctx context.Context, name, flow string, input json.RawMessage) (any, error)

// WithSignals gives signals to a function that is called outside a job.
func WithSignals(ctx context.Context, source Signals) context.Context {
	return context.WithValue(ctx, signalsKey{}, source)
}

// SignalsOf is what WithSignals has given, nil for nothing.
func SignalsOf(ctx context.Context) Signals {
	source, _ := ctx.Value(signalsKey{}).(Signals)
	return source
}

// WithChildren gives children to a function that is called outside a job.
func WithChildren(ctx context.Context, run Children) context.Context {
	return context.WithValue(ctx, childrenKey{}, run)
}

// ChildrenOf is what WithChildren has given, nil for nothing.
func ChildrenOf(ctx context.Context) Children {
	run, _ := ctx.Value(childrenKey{}).(Children)
	return run
}

// plain is a run of a function outside a job.
type plain struct {
	mu    sync.Mutex
	undos []func(context.Context) error
}

// Plain is the context for a durable function that is called outside a job. undo runs the
// compensations that the function registered, once each, the latest first, and joins
// their errors to err, the function's error.
func Plain(ctx context.Context) (outside context.Context, undo func(err error) error) {
	p := &plain{}
	return context.WithValue(ctx, plainKey{}, p), func(err error) error {
		for _, undo := range slices.Backward(p.undos) {
			err = errors.Join(err, undo(context.WithoutCancel(ctx)))
		}
		return err
	}
}

func plainCompensate(ctx context.Context, fn func(context.Context) error) {
	if p, ok := ctx.Value(plainKey{}).(*plain); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.undos = append(p.undos, fn)
	}
}

// plainAll runs the bodies in parallel. A panic of one becomes a panic of the caller.
func plainAll(ctx context.Context, bodies []func(context.Context)) {
	var wg sync.WaitGroup
	panics := make([]error, len(bodies))
	for i, body := range bodies {
		wg.Go(func() { panics[i] = caught(ctx, body) })
	}
	wg.Wait()
	raise(panics)
}

// plainFirst runs the bodies in parallel and returns which ended first. It then ends the
// contexts of the others and waits for them.
func plainFirst(ctx context.Context, bodies []func(context.Context)) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(ErrLost)
	var wg sync.WaitGroup
	panics := make([]error, len(bodies))
	ended := make(chan int, len(bodies))
	for i, body := range bodies {
		wg.Go(func() {
			panics[i] = caught(ctx, body)
			ended <- i
		})
	}
	first := <-ended
	cancel(ErrLost)
	wg.Wait()
	raise(panics)
	return first
}

// caught runs a body, and returns its panic or Goexit as an error.
func caught(ctx context.Context, body func(context.Context)) error {
	err := Alone(ctx, func(ctx context.Context) error { body(ctx); return nil })
	if errors.Is(err, ErrGoexit) {
		err = exited()
	}
	return err
}

func raise(panics []error) {
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
}
