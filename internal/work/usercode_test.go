package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/workers"
)

// typed is an error whose methods need what a nil pointer does not have.
type typed struct{ what string }

func (e *typed) Error() string { return e.what }

// hostile is an error each of whose methods does what it is told.
type hostile struct{ does func() }

func (e hostile) Error() string                { e.does(); return "hostile" }
func (e hostile) Unwrap() error                { e.does(); return nil }
func (e hostile) Is(error) bool                { e.does(); return false }
func (e hostile) As(any) bool                  { e.does(); return false }
func (e hostile) String() string               { e.does(); return "hostile" }
func (e hostile) Format(s fmt.State, _ rune)   { e.does() }
func (e hostile) MarshalJSON() ([]byte, error) { e.does(); return []byte(`1`), nil }

// circle leads back to itself.
type circle struct{}

func (circle) Error() string     { return "circle" }
func (c circle) Unwrap() []error { return []error{c, c} }

// embeds has a method of the runtime's types, on a pointer that is nil.
type embeds struct{ *workers.ChildError }

func (embeds) Error() string { return "embeds" }

func panics(v any) func() { return func() { panic(v) } }

// errorsOfUsers are errors that code of users can return, with the beginning of the message that is
// recorded.
func errorsOfUsers() map[string]struct {
	err  error
	says string
} {
	var nothing *typed
	var failed *workers.Error
	huge := strings.Repeat("ü", 1<<20)
	type c = struct {
		err  error
		says string
	}
	return map[string]c{
		"a typed nil":            {nothing, "a nil *work.typed was returned as an error"},
		"a typed nil in Fatal":   {workers.Fatal(nothing), "an error of type *port.Fatal, whose method Error panicked"},
		"one in RetryAfter":      {workers.RetryAfter(time.Second, nothing), "an error of type *port.Retry, whose method Error panicked"},
		"one in NotDone":         {effects.NotDone(nothing), "an error of type *effects.notDoneError, whose method Error panicked"},
		"a typed nil Error":      {failed, "a nil *workers.Error was returned as an error"},
		"one beside another":     {errors.Join(errors.New("declined"), nothing), "an error of type *errors.joinError, whose method Error panicked"},
		"one wrapped":            {fmt.Errorf("pay: %w", error(nothing)), "pay: "},
		"methods that panic":     {hostile{panics("boom")}, "an error of type work.hostile, whose method Error panicked: boom"},
		"and panic with another": {hostile{panics(hostile{panics("boom")})}, "an error of type work.hostile, whose method Error panicked: a value of type work.hostile"},
		"wrapped":                {fmt.Errorf("pay: %w", hostile{panics(1)}), "pay: "},
		"in a Fail":              {workers.Fail(402, "declined", workers.Data(hostile{panics("boom")})), "declined (its data is left out: it panicked: boom)"},
		"in circles":             {circle{}, "circle"},
		"a nil embedded":         {embeds{}, "embeds"},
		"huge":                   {errors.New(huge), "üüü"},
		"data that is no JSON":   {&workers.Error{Code: 422, Message: "x", Data: json.RawMessage("not json")}, "x (its data is left out: "},
		"data with U+0000":       {&workers.Error{Code: 422, Message: "x", Data: json.RawMessage(`"\u0000"`)}, "x (its data is left out: "},
		"deep data": {&workers.Error{
			Code: 422, Message: "x", Data: json.RawMessage(strings.Repeat("[", 9999) + strings.Repeat("]", 9999)),
		}, "x (its data is left out: "},
		"much data": {&workers.Error{
			Code: 422, Message: "x", Data: json.RawMessage(`"` + strings.Repeat("x", port.MaxErrorData) + `"`),
		}, "x (its data is left out: 65538 bytes, the limit is 65536)"},
		"no code":             {&workers.Error{Message: "x"}, "x (code 0 is outside 400…599)"},
		"a code of no error":  {&workers.Error{Code: 999, Message: strings.Repeat("x", wire.MaxText)}, "xxx"},
		"a class with U+0000": {&workers.Error{Code: 422, Class: "a\x00b", Message: "x"}, "x"},
		"a long class":        {&workers.Error{Code: 422, Class: strings.Repeat("c", 20<<10), Message: "x\xff"}, "x"},
		"a long wait":         {workers.RetryAfter(math.MaxInt64, errors.New("x")), "x (the next attempt was asked for after 2562047h47m16.854775807s: it comes after 8760h0m0s, the limit)"},
	}
}

// E9: an error value of a user's code breaks no more than its own run, wherever it comes from: it
// is recorded, and the process goes on with the next request. The world and the house judge each
// response as the engine does.
func TestE9ErrorsOfUsersBreakTheirOwnRunAlone(t *testing.T) {
	t.Parallel()
	for name, c := range errorsOfUsers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.cfg.Observer = strict{t: t}
			fails := func(context.Context, int) (int, error) { return 0, c.err }
			workers.Handle(h.reg, "plain", fails)
			workers.HandleDurable(h.reg, "durable", fails)
			workers.Handle(h.reg, "effect", func(ctx context.Context, _ int) (int, error) {
				return effects.Do(ctx, "x", func(context.Context) (int, error) { return 0, c.err }, effects.Idempotent)
			})
			workers.Handle(h.reg, "body", fails, workers.Class(effects.Guarded))
			workers.Handle(h.reg, "panics", func(context.Context, int) (int, error) { panic(c.err) })
			workers.Handle(h.reg, "verified", func(ctx context.Context, _ int) (int, error) {
				return effects.Do(ctx, "y", func(context.Context) (int, error) { return 0, errors.New("cut off") },
					effects.Verify(effects.VerifierFunc(func(context.Context, effects.Question) (effects.Answer,
						error,
					) {
						return effects.Answer{}, c.err
					}), effects.Warn))
			})
			workers.HandleDurable(h.reg, "undone", func(ctx context.Context, _ int) (int, error) {
				err := workers.Compensate(ctx, "a", func(context.Context) error { return c.err })
				return 0, errors.Join(err, workers.Fail(409, "no"))
			})
			h.open()
			for i, topic := range []string{"plain", "durable", "effect", "body", "panics", "verified", "undone"} {
				r := h.one(ask(topic, byte(i), `1`))
				switch {
				case topic == "undone":
					require.Equal(t, journal.ResponseSuspended, r.Kind, topic)
					continue
				case topic == "plain", topic == "durable":
					require.True(t, strings.HasPrefix(r.Error.Message, c.says), "%.300s", r.Error.Message)
				}
				require.NotEmpty(t, r.Error.Message, topic)
				require.LessOrEqual(t, len(r.Error.Message), wire.MaxText)
			}
		})
	}
}

// Kinds and codes survive a value that cannot be read otherwise.
func TestErrorsOfUsersKeepTheirKind(t *testing.T) {
	t.Parallel()
	all := errorsOfUsers()
	for name, want := range map[string]wire.Response{
		"a typed nil":          {Kind: journal.ResponseFailedAttempt, Code: 500, Error: &wire.Failure{Class: wire.ClassError}},
		"a typed nil in Fatal": {Kind: journal.ResponseTerminal, Code: 500, Error: &wire.Failure{Class: wire.ClassFatal}},
		"one in RetryAfter": {
			Kind: journal.ResponseFailedAttempt, Code: 500, RetryAfterMS: 1000,
			Error: &wire.Failure{Class: wire.ClassError},
		},
		"data that is no JSON": {Kind: journal.ResponseTerminal, Code: 422, Error: &wire.Failure{Class: wire.ClassBusiness}},
		"no code": {
			Kind: journal.ResponseFailedAttempt, Code: 500, Error: &wire.Failure{Class: wire.ClassBusiness},
		},
		"a class with U+0000": {Kind: journal.ResponseTerminal, Code: 422, Error: &wire.Failure{Class: "a\uFFFDb"}},
		"a long wait": {
			Kind: journal.ResponseFailedAttempt, Code: 500, RetryAfterMS: wire.MaxRetryAfterMS,
			Error: &wire.Failure{Class: wire.ClassError},
		},
	} {
		r := failure(all[name].err, false)
		r.Error.Message = ""
		require.Equal(t, &want, r, name)
	}
	require.Equal(t, 408, failure(all["a typed nil"].err, true).Code, "after the attempt's timeout")
}

// A handler ends without a value in ways that no type tells.
func TestE9EndsOfUsersCode(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.cfg.Observer = strict{t: t}
	workers.Handle(h.reg, "marshals", func(context.Context, int) (hostile, error) { return hostile{panics("boom")}, nil })
	workers.Handle(h.reg, "recorded", func(ctx context.Context, _ int) (hostile, error) {
		return effects.Do(ctx, "x", func(context.Context) (hostile, error) { return hostile{panics("boom")}, nil })
	})
	workers.Handle(h.reg, "exits", func(context.Context, int) (int, error) { return 0, hostile{runtime.Goexit} })
	workers.Handle(h.reg, "reads", func(context.Context, reads) (int, error) { return 0, nil })
	workers.Handle(h.reg, "wrapped", func(context.Context, int) (int, error) { return 1, nil })
	h.reg.Use(func(next workers.Handler) workers.Handler {
		return func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
			if workers.Info(ctx).Topic == "wrapped" {
				panic(hostile{panics("boom")})
			}
			return next(ctx, in)
		}
	})
	h.open()
	for i, c := range []struct{ topic, class, says string }{
		{"marshals", wire.ClassPanic, "boom"},
		{"recorded", wire.ClassInvalid, "the result cannot be written as JSON: it panicked: boom"},
		{"exits", wire.ClassError, "runtime.Goexit"},
		{"reads", wire.ClassPanic, "no input"},
		{"wrapped", wire.ClassPanic, "an error of type work.hostile"},
	} {
		r := h.one(ask(c.topic, byte(i), `1`))
		require.Equal(t, c.class, r.Error.Class, c.topic)
		require.Contains(t, r.Error.Message, c.says)
	}
}

// reads cannot be read.
type reads struct{}

func (*reads) UnmarshalJSON([]byte) error { panic("no input") }

// O12: a type that cannot read an input is a misfit, and no end of the check.
func TestO12AnInputWhoseTypePanicsDoesNotFit(t *testing.T) {
	t.Parallel()
	reg := workers.New()
	workers.Handle(reg, "reads", func(context.Context, reads) (int, error) { return 0, nil })
	misfit, err := Fits(t.Context(), reg, nil, wire.Request{Topic: "reads", Input: json.RawMessage(`1`)})
	require.NoError(t, err)
	require.EqualError(t, misfit, "its type panics when it reads the input: no input")
}

// E8: whatever a handler returns makes a response that the engine decodes.
func TestE8EveryResponseFitsTheWire(t *testing.T) {
	t.Parallel()
	texts := rapid.OneOf(
		rapid.String(), rapid.SampledFrom([]string{"", "\x00", "\xff\xfe", strings.Repeat("ü", wire.MaxText), strings.Repeat("\x00", 20<<10)}),
	)
	payloads := rapid.OneOf(
		rapid.Map(texts, func(s string) []byte { return []byte(s) }),
		rapid.SampledFrom([][]byte{nil, {}, []byte(`{"a":1,"a":2}`), []byte(`"\ud800"`), []byte(strings.Repeat("[", 300)), []byte(`1e999`), []byte(" [1.0] ")}),
	)
	rapid.Check(t, func(t *rapid.T) {
		var err error = &workers.Error{
			Code: rapid.Int().Draw(t, "code"), Class: texts.Draw(t, "class"),
			Message: texts.Draw(t, "message"), Data: payloads.Draw(t, "data"),
		}
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			err = workers.RetryAfter(time.Duration(rapid.Int64().Draw(t, "after")), err)
		case 1:
			err = workers.Fatal(err)
		case 2:
			err = &workers.SignalError{Code: rapid.Int().Draw(t, "signal"), Topic: texts.Draw(t, "topic"), Payload: payloads.Draw(t, "payload")}
		case 3:
			err = &workers.ChildError{Code: rapid.Int().Draw(t, "child"), Class: texts.Draw(t, "of"), Message: texts.Draw(t, "says")}
		case 4:
			err = errors.Join(err, errors.New(texts.Draw(t, "beside")))
		case 5:
			err = &effects.ParkedError{Name: texts.Draw(t, "effect"), Err: err}
		case 6:
			err = &effects.RecordedError{
				Code: rapid.Int().Draw(t, "recorded"), Failure: journal.Failure{Data: payloads.Draw(t, "its")},
			}
		}
		for _, r := range []*wire.Response{failure(err, rapid.Bool().Draw(t, "late")), success("x", payloads.Draw(t, "output"))} {
			require.Same(t, r, sendable("x", r), "nothing is left for the last look")
			back, bad := wire.Decode[wire.Response](wire.Encode(r))
			require.NoError(t, bad)
			_, bad = back.Journal()
			require.NoError(t, bad)
		}
	})
}

// A response that breaks a limit is not sent: the attempt fails with what is wrong.
func TestE8AResponseThatDoesNotFitIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	for _, r := range []*wire.Response{
		{Kind: "other"},
		{Kind: journal.ResponseTerminal, Code: 999},
		{Kind: journal.ResponseTerminal, Code: 200, Output: []byte("no")},
		wire.SuspendedUntil(make([]wire.Pause, wire.MaxPauses+1)),
	} {
		got := sendable("pay", r)
		require.Equal(t, []any{journal.ResponseFailedAttempt, 500, wire.ClassResponse},
			[]any{got.Kind, got.Code, got.Error.Class})
		require.Contains(t, got.Error.Message, "the response of pay cannot be sent: ")
		require.Same(t, got, sendable("pay", got))
	}
}

// strict is an observer that is given text of errors alone.
type strict struct {
	observer.Nop
	t *testing.T
}

func (s strict) Attempt(
	ctx context.Context, _ string, _ observer.Subject,
) (context.Context, func(error, []observer.Span)) {
	plain := func(err error) {
		for _, e := range usercode.Chain(err) {
			switch e.(type) {
			case *typed, hostile, circle, embeds, *workers.Error, *port.Fatal:
				s.t.Errorf("an error of type %T is given to the observer", e)
			}
		}
	}
	return ctx, func(err error, spans []observer.Span) {
		plain(err)
		for _, span := range spans {
			plain(span.Err)
		}
	}
}
