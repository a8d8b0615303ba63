package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/wire"
)

// What a durable function does outside a job (E14).

var (
	errNoBranches = fmt.Errorf("First: %w: it has no branches", effects.ErrUsage)
	errNoSignals  = errors.New("outside a job no signals come: give the function some with workers.WithSignals")
	errNoChildren = errors.New("outside a job there are no children: give the function some with workers.WithChildren")
)

type signalsKey struct{}

type childrenKey struct{}

type plainKey struct{}

// plain is a function that is called by Plain.
type plain struct {
	mu    sync.Mutex
	undos []func(context.Context) error
}

// WithSignals gives functions that are called outside a job the signals that they
// wait for: source returns the payload of the next one, any value that marshals to
// JSON, or blocks until ctx ends. An error of it, *SignalError for one, is that of
// Await. Within a job it means nothing.
func WithSignals(ctx context.Context, source func(ctx context.Context, topic, key string) (any, error)) context.Context {
	return context.WithValue(ctx, signalsKey{}, source)
}

// WithChildren gives functions that are called outside a job the children that they
// start: run returns the output of one, any value that marshals to JSON. An error of
// it, *ChildError for one, is that of Child. Within a job it means nothing.
func WithChildren(ctx context.Context, run func(ctx context.Context, name, flow string, input json.RawMessage) (any, error)) context.Context {
	return context.WithValue(ctx, childrenKey{}, run)
}

// Plain calls a durable function outside a job, as a test does: everything runs
// plainly, without a record, and when the function returns an error its
// compensations run, once each, the latest registered first. Their errors are
// joined to that of the function.
func Plain[In, Out any](ctx context.Context, fn func(context.Context, In) (Out, error), in In) (Out, error) {
	p := &plain{}
	out, err := fn(context.WithValue(ctx, plainKey{}, p), in)
	if err == nil {
		return out, nil
	}
	for _, undo := range slices.Backward(p.undos) {
		err = errors.Join(err, undo(context.WithoutCancel(ctx)))
	}
	return out, err
}

func plainCompensate(ctx context.Context, fn func(context.Context) error) {
	if p, ok := ctx.Value(plainKey{}).(*plain); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.undos = append(p.undos, fn)
	}
}

func plainAwait(ctx context.Context, a awaiting, timeout time.Duration) ([]byte, error) {
	source, ok := ctx.Value(signalsKey{}).(func(context.Context, string, string) (any, error))
	if !ok {
		return nil, fmt.Errorf("signal %q: %w", a.topic, errNoSignals)
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, ErrAwaitTimeout)
		defer cancel()
	}
	payload, err := source(ctx, a.topic, a.key)
	switch {
	case err == nil:
		return json.Marshal(payload)
	case errors.Is(context.Cause(ctx), ErrAwaitTimeout):
		return nil, ErrAwaitTimeout
	}
	return nil, err
}

func plainChild(ctx context.Context, p wire.Pause) ([]byte, error) {
	run, ok := ctx.Value(childrenKey{}).(func(context.Context, string, string, json.RawMessage) (any, error))
	if !ok {
		return nil, fmt.Errorf("child %q: %w", p.Name, errNoChildren)
	}
	output, err := run(ctx, p.Name, p.Flow, p.Input)
	if err != nil {
		return nil, err
	}
	return json.Marshal(output)
}

// plainAll runs the bodies at the same time. A panic of one is that of the caller.
func plainAll(ctx context.Context, bodies []func(context.Context)) {
	var wg sync.WaitGroup
	panics := make([]error, len(bodies))
	for i, body := range bodies {
		wg.Go(func() { panics[i] = caught(ctx, body) })
	}
	wg.Wait()
	raise(panics)
}

// plainFirst runs the bodies at the same time and says which ended first. It waits
// for the others, whose contexts have ended then.
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

// caught runs a body, and returns its panic.
func caught(ctx context.Context, body func(context.Context)) error {
	var failed error = &effects.PanicError{Value: effects.ErrGoexit, Stack: debug.Stack()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				failed = &effects.PanicError{Value: v, Stack: debug.Stack()}
			}
		}()
		body(ctx)
		failed = nil
	}()
	<-done
	return failed
}

func raise(panics []error) {
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
}
