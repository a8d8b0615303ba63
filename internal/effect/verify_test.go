package effect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// oracle is a verifier that records its questions.
type oracle struct {
	say func(ctx context.Context) (effects.Answer, error)

	mu        sync.Mutex
	questions []effects.Question
	keys      []string // effects.Key(ctx)
}

func (o *oracle) Verify(ctx context.Context, q effects.Question) (effects.Answer, error) {
	o.mu.Lock()
	o.questions, o.keys = append(o.questions, q), append(o.keys, effects.Key(ctx))
	o.mu.Unlock()
	return o.say(ctx)
}

func (o *oracle) asked() []effects.Question {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.questions
}

func says(state effects.State, result string) func(context.Context) (effects.Answer, error) {
	return func(context.Context) (effects.Answer, error) {
		return effects.Answer{State: state, Result: json.RawMessage(result), Note: "looked"}, nil
	}
}

// silence are the ways of not saying whether an effect was done.
var silence = map[string]func(context.Context) (effects.Answer, error){
	"unknown": says(effects.StateUnknown, ""),
	"error": func(context.Context) (effects.Answer, error) {
		return effects.Answer{State: effects.StateDone}, errors.New("no route")
	},
	"panic":       func(context.Context) (effects.Answer, error) { panic("nil map") },
	"goexit":      func(context.Context) (effects.Answer, error) { runtime.Goexit(); return effects.Answer{}, nil },
	"late":        func(ctx context.Context) (effects.Answer, error) { <-ctx.Done(); return effects.Answer{}, ctx.Err() },
	"no state":    says("", "7"),
	"odd state":   says("maybe", "7"),
	"no JSON":     says(effects.StateDone, "{"),
	"another":     says(effects.StateDone, `"seven"`), // which is no int
	"over limits": says(effects.StateDone, `"`+strings.Repeat("x", wire.MaxResult)+`"`),
}

// bound gives a verifier that will be late a short timeout.
func bound(o *oracle, late bool) effects.Verifier {
	if late {
		return effects.VerifyWithin(o, time.Millisecond)
	}
	return o
}

// counts is an observer that counts the outcomes of verifiers.
type counts struct {
	observer.Nop
	verified []string
}

func (c *counts) Count(metric string, _ int64, attributes ...string) {
	if metric == observer.MetricVerified {
		c.verified = append(c.verified, strings.Join(attributes, " "))
	}
}

// watched counts the outcomes and collects the warnings of the session.
func watched(s *Session) (*counts, *[]string) {
	c, warnings := &counts{}, &[]string{}
	s.cfg.Observer = c
	s.cfg.Warn = func(message string, _ ...any) { *warnings = append(*warnings, message) }
	return c, warnings
}

// unfinished makes an effect without an outcome: the process dies in the call, or the
// call ends without one.
var unfinished = map[string]func(ctx context.Context, v effects.Option) error{
	"crash": func(ctx context.Context, _ effects.Option) error {
		defer func() { _ = recover() }()
		_, _ = effects.Do(ctx, "charge", func(context.Context) (int, error) { panic("the process dies") })
		return nil
	},
	"error": func(ctx context.Context, v effects.Option) error {
		_, err := effects.Do(ctx, "charge", func(context.Context) (int, error) { return 0, errors.New("connection reset") }, v)
		return err
	},
	"panic": func(ctx context.Context, v effects.Option) (err error) {
		defer func() { _ = recover() }()
		_, err = effects.Do(ctx, "charge", func(context.Context) (int, error) { panic("nil map") }, v)
		return err
	},
}

// 3.3: a verifier says of an unfinished Guarded effect that it was done: its result is recorded and fn is
// not called again. One that was not done runs again under the next key: at once after a crash, and when
// the failed attempt is repeated.
func TestVerifyUnfinished(t *testing.T) {
	t.Parallel()
	for name, begin := range unfinished {
		for _, done := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " done: ", done), func(t *testing.T) {
				b := newBench(t)
				o := &oracle{say: says(effects.StateNotDone, "")}
				if done {
					o.say = says(effects.StateDone, " 7.0 ")
				}
				v := effects.Verify(o, effects.Human)
				ctx, s := b.run()
				err := begin(ctx, v)
				if name != "crash" {
					require.NoError(t, s.Verdict())
					require.Len(t, o.asked(), 1)
				}
				if name == "error" && !done {
					require.True(t, effects.IsNotDone(err), "%v", err)
					require.ErrorContains(t, err, "connection reset; its verifier says that it was not done (looked)")
				}
				first := b.store.Rows(theRequest)[0].Key.String()
				if done && name != "crash" {
					o.say = says(effects.StateDone, "")
				}
				c := counting[int]{value: 3}
				ctx, s = b.again()
				got, err := effects.Do(ctx, "charge", c.fn, v)
				require.NoError(t, err)
				require.NoError(t, s.Verdict())
				require.Nil(t, o.asked()[0].Recorded)
				require.Equal(t, []string{first, first}, []string{o.asked()[0].Key, o.keys[0]}, "Key(ctx) of the verifier")
				rows := b.store.Rows(theRequest)
				if done {
					require.Equal(t, 7, got)
					require.Zero(t, c.calls)
					require.Equal(t, []any{store.EffectCompleted, "7"}, []any{rows[0].State, string(rows[0].Result)}, "canonical")
					return
				}
				require.Equal(t, 3, got)
				require.Len(t, c.keys, 1)
				require.NotEqual(t, first, c.keys[0])
				require.Equal(t, []store.EffectState{store.EffectNotDone, store.EffectCompleted},
					[]store.EffectState{rows[0].State, rows[1].State})
				require.Len(t, o.asked(), 1, "of what is known nobody is asked")
			})
		}
	}
}

// 3.3: an unknown effect is parked, however the verifier says so, and also without a
// verifier.
func TestVerifyUnfinishedUnknown(t *testing.T) {
	t.Parallel()
	for how, begin := range unfinished {
		for name, say := range silence {
			t.Run(how+" "+name, func(t *testing.T) { verifyUnknown(t, begin, say, name == "late") })
		}
		t.Run(how+" no result", func(t *testing.T) { verifyUnknown(t, begin, says(effects.StateDone, ""), false) })
	}
}

func verifyUnknown(
	t *testing.T, begin func(context.Context, effects.Option) error, say func(context.Context) (effects.Answer, error),
	late bool,
) {
	b := newBench(t)
	o := &oracle{say: say}
	v := effects.Verify(bound(o, late), effects.Human)
	ctx, _ := b.run()
	_ = begin(ctx, v)
	c := counting[int]{}
	ctx, s := b.again()
	counts, _ := watched(s)
	_, err := effects.Do(ctx, "charge", c.fn, v)
	parked, ok := errors.AsType[*effects.ParkedError](err)
	require.True(t, ok, "%v", err)
	require.ErrorAs(t, s.Verdict(), new(*effects.ParkedError))
	require.Error(t, parked.Verifier)
	require.ErrorContains(t, err, "its verifier was asked: ")
	require.ErrorContains(t, err, "`quipu dead done`")
	require.Equal(t, store.EffectStarted, b.store.Rows(theRequest)[0].State)
	require.Zero(t, c.calls)
	require.Equal(t, []string{"mode human outcome unknown"}, counts.verified)
}

// A run that is given up while its verifier works is parked, and unparked by a late
// answer of the verifier.
func TestVerifyAbandoned(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("the timeout of the attempt passed")
	_, s := b.run()
	o := &oracle{say: func(ctx context.Context) (effects.Answer, error) {
		require.NoError(t, ctx.Err(), "the end of the run does not cut the question")
		s.Abandon(ended)
		return effects.Answer{State: effects.StateDone, Result: json.RawMessage("7")}, nil
	}}
	got, err := effects.Do(With(ctx, s), "charge", func(ctx context.Context) (int, error) {
		cancel(ended)
		return 0, context.Cause(ctx)
	}, effects.Verify(o, effects.Warn))
	require.NoError(t, err)
	require.Equal(t, 7, got)
	require.ErrorAs(t, s.Verdict(), new(*effects.ParkedError))
	require.Equal(t, store.EffectCompleted, b.store.Rows(theRequest)[0].State)
}

// The run that has the request now asks the verifier, not the run that lost it.
func TestVerifyALostRunDoesNotAsk(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{store.ErrStale, store.ErrJobClosed, store.ErrLeased} {
		t.Run(cause.Error(), func(t *testing.T) {
			b := newBench(t)
			_, s := b.run()
			ctx, cancel := context.WithCancelCause(t.Context())
			o := &oracle{say: says(effects.StateDone, "7")}
			_, err := effects.Do(With(ctx, s), "charge", func(ctx context.Context) (int, error) {
				cancel(cause)
				return 0, context.Cause(ctx)
			}, effects.Verify(o, effects.Warn))
			require.ErrorAs(t, err, new(*effects.ParkedError))
			require.Empty(t, o.asked())
		})
	}
}

// E5: an effect that a verifier calls not done counts as an attempt.
func TestE5VerifiedAttempts(t *testing.T) {
	b := newBench(t)
	o := &oracle{say: says(effects.StateNotDone, "")}
	c := counting[int]{err: refusedLater{}}
	options := []effects.Option{effects.Attempts(2), effects.Verify(o, effects.Human)}
	ctx, _ := b.run()
	_, err := effects.Do(ctx, "charge", c.fn, options...)
	require.True(t, effects.IsNotDone(err), "%v", err)
	for range 2 {
		ctx, _ = b.nextTurn()
		_, err = effects.Do(ctx, "charge", c.fn, options...)
		recorded, ok := errors.AsType[*effects.RecordedError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, 503, recorded.Code)
	}
	require.Equal(t, 2, c.calls)
	require.Len(t, o.asked(), 2)
}

// refusedLater is an error with a code that is no result.
type refusedLater struct{}

func (refusedLater) Error() string { return "try later" }

func (refusedLater) Refusal() (int, journal.Failure, bool) {
	return 503, journal.Failure{Class: "business", Message: "try later"}, false
}

// 3.3: a completed effect, by mode and by the verifier's finding. The verifier is asked
// once in each later run.
func TestVerifyCompleted(t *testing.T) {
	t.Parallel()
	finds := map[string]func(context.Context) (effects.Answer, error){
		"the same": says(effects.StateDone, "3.0"), "done": says(effects.StateDone, ""), "other": says(effects.StateDone, "4"),
		"not done": says(effects.StateNotDone, ""),
	}
	for name, say := range silence {
		finds[name] = say
	}
	for _, mode := range []effects.Mode{effects.Strict, effects.Warn, effects.Human} {
		for name, say := range finds {
			for _, class := range []effects.Class{effects.Guarded, effects.Idempotent} {
				t.Run(string(mode)+" "+name+" "+string(class), func(t *testing.T) {
					verifyCompleted(t, mode, name, class, say)
				})
			}
		}
	}
}

func verifyCompleted(
	t *testing.T, mode effects.Mode, name string, class effects.Class,
	say func(context.Context) (effects.Answer, error),
) {
	b := newBench(t)
	o := &oracle{say: say}
	options := []effects.Option{
		effects.Verify(bound(o, name == "late"), mode), class, effects.Once(), effects.WithKey("order-1"), effects.Args([]int{1}),
	}
	c := counting[int]{value: 3}
	ctx, s := b.run()
	s.cfg.Input = []byte(`{"id":1}`)
	_, err := effects.Do(ctx, "charge", c.fn, options...)
	require.NoError(t, err)
	require.Empty(t, o.asked(), "a result that this run made is not doubted")

	ctx, s = b.nextTurn()
	s.cfg.Input = []byte(`{"id":1}`)
	counts, warnings := watched(s)
	var got int
	for range 2 {
		got, err = effects.Do(ctx, "charge", c.fn, options...)
	}
	require.Equal(t, 1, c.calls)
	require.Eventually(t, func() bool { return len(o.asked()) > 0 }, time.Minute, time.Millisecond, "one that is late may not have begun")
	require.Len(t, o.asked(), 1)
	row := b.store.Rows(theRequest)[0]
	require.Equal(t, effects.Question{
		Space: "shop", Job: theJob, Generation: 1, Version: "1", Activity: "charge", DAD: ",0,0",
		Name: "charge", Explicit: "order-1", Key: row.Key.String(), Class: class,
		Input: []byte(`{"id":1}`), Args: []byte(`[1]`), Recorded: []byte(`3`),
	}, o.asked()[0])
	require.Len(t, counts.verified, 1)
	outcome := strings.TrimPrefix(counts.verified[0], "mode "+string(mode)+" outcome ")
	switch name {
	case "the same", "done":
		require.Equal(t, "confirmed", outcome)
		require.Empty(t, *warnings)
	case "other", "not done":
		require.Equal(t, "contradicted", outcome)
		if mode != effects.Warn {
			contradicted(t, s, mode, name, err)
			return
		}
		require.Len(t, *warnings, 1)
	default:
		require.Equal(t, "unconfirmed", outcome)
		require.Len(t, *warnings, 1)
	}
	require.NoError(t, err)
	require.Equal(t, 3, got)
	require.NoError(t, s.Verdict())
}

// contradicted checks the error of a run with a contradicting verifier.
func contradicted(t *testing.T, s *Session, mode effects.Mode, name string, err error) {
	t.Helper()
	require.Equal(t, err, s.Verdict(), "also when the handler hides it")
	_, again := effects.Do(With(t.Context(), s), "other", func(context.Context) (int, error) { return 1, nil })
	require.Equal(t, err, again, "such a run has no further effects")
	var doubt *Doubt
	if mode == effects.Strict {
		e, ok := errors.AsType[*VerificationError](err)
		require.True(t, ok, "%v", err)
		doubt = &e.Doubt
	} else {
		e, ok := errors.AsType[*ConfirmError](err)
		require.True(t, ok, "%v", err)
		require.ErrorContains(t, err, "`quipu dead retry`")
		doubt = &e.Doubt
	}
	outside := ""
	if name == "other" {
		outside = `"outside":4,`
		require.ErrorContains(t, err, "was done with another result (looked)")
	} else {
		require.ErrorContains(t, err, "was not done (looked)")
	}
	require.JSONEq(t, `{"effect":"`+doubt.Key+`","name":"charge",`+outside+`"recorded":3}`, string(doubt.Data()))
}

// A verifier is not asked about an effect that ended with an error, that a person has vouched for, or that
// a person has declared not done.
func TestVerifyAsksOnlyWhereItMatters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		decide func(*store.EffectRow)
		calls  int
	}{
		"an error": {declined{}, func(*store.EffectRow) {}, 1},
		"vouched":  {nil, func(row *store.EffectRow) { row.Vouched = true }, 1},
		"voided":   {nil, func(row *store.EffectRow) { row.State = store.EffectNotDone }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			o := &oracle{say: says(effects.StateNotDone, "")}
			call := counting[int]{value: 3, err: c.err}
			for range 2 {
				ctx, _ := b.again()
				got, err := effects.Do(ctx, "charge", call.fn, effects.Verify(o, effects.Human))
				if c.err != nil {
					require.ErrorAs(t, err, new(*effects.RecordedError))
				} else {
					require.NoError(t, err)
					require.Equal(t, 3, got)
				}
				b.store.Decide(theRequest, b.store.Rows(theRequest)[0].Key, c.decide)
			}
			require.Equal(t, c.calls, call.calls)
			require.Len(t, slices.Compact(call.keys), c.calls, "again under the next key")
			require.Empty(t, o.asked())
		})
	}
}

// A verifier that ignores its context does not hold anybody up.
func TestVerifyIgnoringItsContext(t *testing.T) {
	b := newBench(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	o := &oracle{say: func(context.Context) (effects.Answer, error) {
		<-release
		return effects.Answer{State: effects.StateDone}, nil
	}}
	ctx, _ := b.run()
	err := unfinished["error"](ctx, effects.Verify(bound(o, true), effects.Warn))
	require.ErrorAs(t, err, new(*effects.ParkedError))
	require.ErrorContains(t, err, "it did not answer in time")
}

// Effects inside a verifier are not recorded.
func TestVerifyRecordsNothing(t *testing.T) {
	b := newBench(t)
	o := &oracle{say: func(ctx context.Context) (effects.Answer, error) {
		_, err := effects.Do(ctx, "inner", func(context.Context) (int, error) { return 1, nil })
		return effects.Answer{State: effects.StateDone}, err
	}}
	c := counting[int]{value: 3}
	for range 2 {
		ctx, _ := b.again()
		_, err := effects.Do(ctx, "charge", c.fn, effects.Verify(o, effects.Strict))
		require.NoError(t, err)
	}
	require.Len(t, o.asked(), 1)
	require.Len(t, b.store.Rows(theRequest), 1)
}

// A verifier that is registered for a name applies to calls without their own, of a class
// that reaches outside.
func TestVerifyByName(t *testing.T) {
	b := newBench(t)
	o, own := &oracle{say: says(effects.StateDone, "")}, &oracle{say: says(effects.StateDone, "")}
	var names []string
	run := func() {
		ctx, s := b.again()
		s.cfg.Verifier = func(name string, class effects.Class) (effects.Verifier, effects.Mode) {
			names = append(names, name+" "+string(class))
			return o, effects.Strict
		}
		one := (&counting[int]{}).fn
		for name, options := range map[string][]effects.Option{
			"a": nil, "b": {effects.Idempotent}, "c": {effects.Pure}, "d": {effects.Verify(own, effects.Strict)},
		} {
			_, err := effects.Do(ctx, name, one, options...)
			require.NoError(t, err)
		}
		_, err := effects.DoTx(ctx, "e", func(context.Context, any) (int, error) { return 1, nil })
		require.NoError(t, err)
	}
	run()
	run()
	require.ElementsMatch(t, []string{"a guarded", "b idempotent", "a guarded", "b idempotent"}, names)
	require.Len(t, o.asked(), 2)
	require.Len(t, own.asked(), 1)
}

// A doubt with large results still names the effect.
func TestDoubtDataIsBounded(t *testing.T) {
	t.Parallel()
	d := Doubt{Name: "charge", Key: "k", Recorded: []byte(`"` + strings.Repeat("x", wire.MaxFailureData) + `"`)}
	require.JSONEq(t, `{"effect":"k","name":"charge"}`, string(d.Data()))
}
