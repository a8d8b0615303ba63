package effects

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/internal/effect/port"
)

// Do runs fn as an effect of the handler that ctx belongs to, and returns the result that
// this run or an earlier one recorded (3.1). The class is Guarded unless an option says
// otherwise. The name has 1 to 200 bytes of UTF-8 without '['. The result travels as JSON, at
// most 1 MiB in canonical form; an empty result is a result too (E6).
//
// Do may return while the result is being recorded. Then no other effect of the handler is
// called, and the handler's own end counts for nothing, before it is recorded (E4).
//
// fn ends in one of four ways (E5). A result is recorded. A business error of package workers
// (workers.Fail, workers.Fatal) is recorded too, and replays as a *RecordedError. NotDone(err)
// is returned, and the effect may run again under the next key. After any other error, a panic
// or a cancellation the outcome is unknown, and Do returns *UnknownError (Idempotent) or
// *ParkedError (Guarded). Pure effects just return every error.
//
// In a loop each call needs a WithKey or its own Args; the same key twice is an ErrUsage
// unless Once is given (E2), and so are more than 10 000 effects in a run. Outside a job Do
// calls fn and nothing else (E14).
func Do[T any](ctx context.Context, name string, fn func(context.Context) (T, error), options ...Option) (T, error) {
	run := port.RunOf(ctx)
	if run == nil {
		return fn(ctx)
	}
	c := call(name, Guarded, options)
	switch {
	case Class(c.Class) == Tx:
		refuse(c, errors.New("class tx needs a transaction: use quipu.DoTx"))
	case Class(c.Class) == Pure && c.Verifier != nil:
		refuse(c, errors.New("a verifier, and class pure: there is nothing outside to be verified"))
	}
	var out T
	err := run.Do(ctx, c, func(ctx context.Context, _ any) (any, error) { return fn(ctx) }, &out)
	return out, err
}

// DoTx runs fn as an effect of class Tx: tx is a handle on a transaction of the store,
// which commits with the result, once. Handlers use quipu.DoTx, which wraps it and knows
// the handle's type.
//
// A result, a business error and a NotDone are recorded as in Do; the latter two roll back
// what fn wrote. Any other error, a panic and the end of ctx roll back and leave no trace, so
// the outcome is never unknown. After trouble with the database, a deadlock for example,
// fn runs again at once in a new transaction: it should do nothing but SQL, and cannot
// have effects of its own. Outside a job fn gets no handle (E14).
func DoTx[T any](
	ctx context.Context, name string, fn func(ctx context.Context, tx any) (T, error), options ...Option,
) (T, error) {
	run := port.RunOf(ctx)
	if run == nil {
		return fn(ctx, nil)
	}
	c := call(name, Tx, options)
	if Class(c.Class) != Tx {
		refuse(c, fmt.Errorf("class %s: DoTx is of class tx", c.Class))
	}
	if c.Verifier != nil {
		refuse(c, errors.New("a verifier, and class tx: it commits with its result, there is nothing to be verified"))
	}
	var out T
	err := run.Do(ctx, c, func(ctx context.Context, tx any) (any, error) { return fn(ctx, tx) }, &out)
	return out, err
}

// Key returns the key of the effect that ctx runs in, 64 hexadecimal digits, for use as
// an idempotency key outside (E1). It is the same in every run. Outside of fn, or of a
// job (E14), it is "".
func Key(ctx context.Context) string { return port.EffectOf(ctx) }
