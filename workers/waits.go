package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// ErrAwaitTimeout says that no signal came in time. It ends the activity with code 408
// when the function returns it.
var ErrAwaitTimeout = errors.New("no signal came in time")

// SignalError is a signal that came with an error code.
type SignalError struct {
	Topic, Name string          // Name of the wait
	Code        int             // 400…599
	Payload     json.RawMessage // canonical
}

// Error names the signal.
func (e *SignalError) Error() string {
	return fmt.Sprintf("signal %q came with code %d", e.Topic, e.Code)
}

// ChildError is the outcome of a child that did not complete, or could not be started.
type ChildError struct {
	Name, Flow string // Name of the call
	Job        string // "" if it was not started
	Code       int    // 400…599: 410 interrupted, 404 unknown flow, …
	Class      string
	Message    string
	Data       json.RawMessage // canonical
}

// Error names the child and gives its message.
func (e *ChildError) Error() string {
	return fmt.Sprintf("child %q of flow %s ended with error %d (%s): %s", e.Name, e.Flow, e.Code, e.Class, e.Message)
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Sleep returns when d has passed on the database's clock since the function first called
// it. The name is unique among the sleeps of the run, 1 to 200 bytes. A
// duration of 0 or less is over at once; at most ten years are allowed. A context that the
// function made does not end the sleep: use First for that. An error wraps
// effects.ErrUsage, or says why the run cannot go on. Outside a job it
// sleeps in the process.
func Sleep(ctx context.Context, name string, d time.Duration) error {
	if effect.From(ctx) == nil {
		return pause(ctx, d)
	}
	_, err := durable.Wait(ctx, wire.Pause{Kind: journal.PauseSleep, Name: name, For: wire.Micros(d)})
	return err
}

// AwaitOption changes an Await: SignalKey or As.
type AwaitOption func(*awaiting)

type awaiting struct{ topic, name, key string }

// SignalKey is the key of the awaited signal. Default: the job's key.
func SignalKey(key string) AwaitOption { return func(a *awaiting) { a.key = key } }

// As names the wait; the name is unique among the waits of the run. Default: the signal's
// topic.
func As(name string) AwaitOption { return func(a *awaiting) { a.name = name } }

// Await returns the payload of the next signal of the topic that no other wait takes. A
// signal that came earlier is kept (1.11). The topic is one that a flow can name. timeout bounds
// the wait, counted from the function's first call, with ErrAwaitTimeout; 0 is no bound, less than
// 0 the shortest. A signal with an error code is a *SignalError. A payload that does not fit T is
// an error 400 that ends the activity when the function returns it.
//
// Outside a job the signals come from quiputest.WithSignals.
func Await[T any](ctx context.Context, topic string, timeout time.Duration, options ...AwaitOption) (T, error) {
	a := awaiting{topic: topic, name: topic, key: Info(ctx).Key}
	for _, o := range options {
		o(&a)
	}
	var out T
	if timeout < 0 {
		timeout = time.Microsecond
	}
	if err := flow.CheckTopic(topic); err != nil {
		return out, fmt.Errorf("signal %.80q: %w: %w", topic, effects.ErrUsage, err)
	}
	if effect.From(ctx) == nil {
		raw, err := plainAwait(ctx, a, timeout)
		return fit[T](raw, err, "the payload of signal", topic)
	}
	if a.key == "" && Info(ctx).Job != "" {
		return out, fmt.Errorf("signal %q: %w: it has no key: no signal comes without one", topic, effects.ErrUsage)
	}
	r, err := durable.Wait(ctx,
		wire.Pause{Kind: journal.PauseSignal, Name: a.name, Topic: topic, Key: a.key, For: wire.Micros(timeout)})
	switch {
	case err != nil:
		return out, err
	case r.By == journal.ByTimer:
		return out, ErrAwaitTimeout
	case r.Code != collation.CodeOK:
		e := &SignalError{Topic: topic, Name: a.name, Code: errorCode(r.Code)}
		if r.Error != nil {
			e.Payload = r.Error.Data
		}
		return out, e
	}
	return fit[T](r.Output, nil, "the payload of signal", topic)
}

// fit decodes a recorded value into T. A value that does not fit now never will.
func fit[T any](raw []byte, err error, what, name string) (out T, _ error) {
	if err != nil || len(raw) == 0 {
		return out, err
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, &Error{
			Code: http.StatusBadRequest, Class: wire.ClassInput, Message: fmt.Sprintf("%s %s does not fit into %T: %v", what, name, out, err),
		}
	}
	return out, nil
}

func errorCode(code int) int {
	if !wire.IsErrorCode(code) {
		return collation.CodeInternal
	}
	return code
}

// ChildOption changes a Child: ChildKey or ChildVersion.
type ChildOption func(*child)

type child struct{ key, version string }

// ChildKey is the key of the child's job. Default: a key made of the job's and the
// activity's. A key that another job uses is an error 409.
func ChildKey(key string) ChildOption { return func(c *child) { c.key = key } }

// ChildVersion is the version of the child's flow. Default: the active one, when
// the child starts.
func ChildVersion(version string) ChildOption { return func(c *child) { c.version = version } }

// Child starts a job of another flow of the space and returns its output when it has
// completed, otherwise a *ChildError. The name is unique among the children of the run.
// input is any value that marshals to JSON; all waits that are open at a time have up to
// 256 KiB. A child outlives a function that fails, unless the job is
// interrupted with descend. Outside a job children come from quiputest.WithChildren.
func Child[Out any](ctx context.Context, name, flow string, input any, options ...ChildOption) (Out, error) {
	var out Out
	raw, err := canonical.Marshal(input)
	if err != nil {
		return out, fmt.Errorf("child %q: %w: its input cannot be written as JSON: %w", name, effects.ErrUsage, err)
	}
	var c child
	for _, o := range options {
		o(&c)
	}
	p := wire.Pause{Kind: journal.PauseChild, Name: name, Flow: flow, Key: c.key, Version: c.version, Input: raw}
	if effect.From(ctx) == nil {
		raw, err := plainChild(ctx, p)
		return fit[Out](raw, err, "the output of flow", flow)
	}
	r, err := durable.Wait(ctx, p)
	switch {
	case err != nil:
		return out, err
	case r.Code != collation.CodeOK:
		return out, childError(&p, r)
	case r.Output == nil && !r.Ref.IsZero():
		return out, errRef
	}
	return fit[Out](r.Output, nil, "the output of flow", flow)
}

// errRef refuses an output by reference, which the store should have resolved.
var errRef = errors.New("the output of the child is stored beside its entry, and was not read")

func childError(p *wire.Pause, r *journal.Response) *ChildError {
	e := &ChildError{Name: p.Name, Flow: p.Flow, Code: errorCode(r.Code), Class: wire.ClassError}
	if !r.Child.IsZero() {
		e.Job = r.Child.String()
	}
	if r.Error != nil {
		e.Class, e.Message, e.Data = r.Error.Class, r.Error.Message, r.Error.Data
	}
	return e
}
