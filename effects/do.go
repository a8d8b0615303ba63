package effects

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// Do runs fn as an effect of the handler that ctx belongs to, and returns the result that
// this run or an earlier one recorded (3.1). The class is Guarded unless an option says
// otherwise. The result travels as JSON, at most wire.MaxResult bytes in canonical form;
// an empty result is a result too (E6).
//
// Do may return while the result is being recorded. Then no other effect of the handler is
// called, and the handler's own end counts for nothing, before it is recorded (E4).
//
// fn ends in one of four ways (E5). A result is recorded. An error that is a Refusal is
// recorded too, and replays as a *RecordedError. NotDone(err) is returned, and the effect
// may run again under the next key. After any other error, a panic or a cancellation the
// outcome is unknown, and Do returns *UnknownError (Idempotent) or *ParkedError
// (Guarded). Pure effects just return every error.
//
// In a loop each call needs a WithKey or its own Args; the same key twice is a
// *DuplicateError unless Once is given (E2). Outside a job Do calls fn and nothing else
// (E14).
func Do[T any](ctx context.Context, name string, fn func(context.Context) (T, error), options ...Option) (T, error) {
	s := From(ctx)
	if s == nil {
		return fn(ctx)
	}
	c := outside(name, options)
	c.fits = fits[T]
	raw, err := s.do(ctx, c, func(ctx context.Context, _ any) ([]byte, error) {
		v, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		return encode(v)
	})
	return decode[T](s, c, raw, err)
}

// DoTx runs fn as an effect of class Tx: tx is a handle on a transaction of the store,
// which commits with the result, once. Handlers use quipu.DoTx, which wraps it and knows
// the handle's type.
//
// A result, a Refusal and a NotDone are recorded as in Do; the latter two roll back what
// fn wrote. Any other error, a panic and the end of ctx roll back and leave no trace, so
// the outcome is never unknown. After trouble with the database, a deadlock for example,
// fn runs again at once in a new transaction: it should do nothing but SQL, and cannot
// have effects of its own. Outside a job fn gets no handle (E14).
func DoTx[T any](ctx context.Context, name string, fn func(ctx context.Context, tx any) (T, error), options ...Option) (T, error) {
	s := From(ctx)
	if s == nil {
		return fn(ctx, nil)
	}
	c := inside(name, options)
	raw, err := s.do(ctx, c, func(ctx context.Context, tx any) ([]byte, error) {
		v, err := fn(ctx, tx)
		if err != nil {
			return nil, err
		}
		return encode(v)
	})
	return decode[T](s, c, raw, err)
}

// fits reports, by its error, whether raw can be the result of an effect of type T.
func fits[T any](raw []byte) error {
	var out T
	return json.Unmarshal(raw, &out)
}

// decode reads a recorded result.
func decode[T any](s *Session, c *Call, raw []byte, err error) (T, error) {
	var out T
	if err != nil || len(raw) == 0 {
		return out, err
	}
	// The first run, too, returns the recorded value and not what fn returned, so that a
	// handler sees the same value in every run.
	err = json.Unmarshal(raw, &out)
	switch {
	case err == nil:
		return out, nil
	case c.place == nil && (c.class == Guarded || c.class == Idempotent):
		return out, s.judge(c, &MisfitError{Name: c.name, Key: c.key.String(), Type: fmt.Sprintf("%T", out), Err: err})
	case c.place == nil:
		return out, fmt.Errorf("effect %q: its recorded result does not fit into %T: %w", c.name, out, err)
	}
	return out, s.judge(c, &NondeterminismError{
		Position: c.position, Asked: fmt.Sprintf("%s with a result of type %T", c, out), Recorded: fmt.Sprintf("one that does not fit it (%v)", err),
	})
}

// encode gives the canonical bytes of a result. A result that cannot be recorded becomes
// a recorded error: the outside was reached, so fn must not run again.
func encode(v any) ([]byte, error) {
	var raw []byte
	var err error
	panicked, ok := usercode.Try(func() { raw, err = canonical.Marshal(v) })
	if !ok {
		panicked = "it panicked: " + panicked
	} else if err != nil {
		panicked, ok = usercode.Text(err), false
	}
	if !ok {
		return nil, &unusable{class: "result_invalid", message: "the result cannot be written as JSON: " + panicked}
	}
	if len(raw) > wire.MaxResult {
		return nil, &unusable{
			class:   "result_too_large",
			message: fmt.Sprintf("the result has %d bytes, the limit is %d: return a reference to it", len(raw), wire.MaxResult),
		}
	}
	return raw, nil
}

// unusable is a result that cannot be recorded; it is a Refusal.
type unusable struct{ class, message string }

func (e *unusable) Error() string { return e.message }

// Refusal implements Refusal.
func (e *unusable) Refusal() (int, journal.Failure, bool) {
	return collation.CodeInternal, journal.Failure{Class: e.class, Message: e.message}, true
}
