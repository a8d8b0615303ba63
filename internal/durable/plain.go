package durable

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// These functions run a durable function outside a job (E14).

type plainKey struct{}

// plain is a run of a function outside a job.
type plain struct {
	mu    sync.Mutex
	undos []func(context.Context) error
}

// Plain is the context for a durable function that is called outside a job. undo runs the
// compensations that the function registered, once each, the latest first, and joins
// their errors to err, the function's error.
func Plain(ctx context.Context) (of context.Context, undo func(err error) error) {
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
