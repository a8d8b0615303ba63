package effects

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/wire"
)

// Do runs fn as an effect of the handler that ctx belongs to, and returns its
// result: recorded by this run or by an earlier one (3.1). The class is Guarded
// unless an option says otherwise. The result travels as JSON, at most
// wire.MaxResult bytes in canonical form (E6); an empty one is a result too.
//
// fn ends in one of four ways (E5): with a result; with an error that is a
// Refusal, which is recorded and replays as a *RecordedError; with
// NotDone(err), which Do returns and after which the effect may run again under
// the next key; with any other error, a panic or a cancellation: the outcome is
// unknown, and Do returns *UnknownError (Idempotent) or *ParkedError (Guarded). Of
// Pure effects every error is just returned.
//
// In a loop each call needs a WithKey or its own Args; the same key twice is a
// *DuplicateError unless Once is given (E2). Outside a job Do calls fn and nothing
// else (E14).
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

// DoTx runs fn as an effect of class Tx: tx is a handle on a transaction of the
// store, which commits with the result, once. It is what quipu.DoTx is made of,
// which knows the handle; handlers use that.
//
// A result, or an error that is a Refusal, is recorded; of the latter, what fn
// wrote is rolled back. So it is with NotDone, which is recorded as in Do. Any
// other error, a panic and the end of ctx roll back and leave no trace: the
// outcome is never unknown. After trouble with the database, a deadlock for
// example, fn runs again at once, in a new transaction: it should do nothing but
// SQL, and can have no effects of its own. Outside a job fn gets no handle (E14).
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

// fits says whether bytes are the result of an effect of type T.
func fits[T any](raw []byte) error {
	var out T
	return json.Unmarshal(raw, &out)
}

// decode reads what was recorded.
func decode[T any](s *Session, c *Call, raw []byte, err error) (T, error) {
	var out T
	if err != nil || len(raw) == 0 {
		return out, err
	}
	// The first run, too, returns what was recorded and not what fn returned: a
	// handler sees the same value on every run.
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

// encode gives the canonical bytes of a result. What cannot be recorded is an
// error that is recorded in its place: the outside was reached, fn must not run
// again.
func encode(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err == nil {
		raw, err = canonical.Payload(raw)
	}
	if err != nil {
		return nil, &unusable{class: "result_invalid", message: "the result cannot be written as JSON: " + err.Error()}
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
