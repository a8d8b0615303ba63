package work

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// finds is a verifier with a fixed answer; it reports its questions.
func finds(state effects.State, result string, asked chan<- effects.Question) effects.Verifier {
	return effects.VerifierFunc(func(_ context.Context, q effects.Question) (effects.Answer, error) {
		if asked != nil {
			asked <- q
		}
		return effects.Answer{State: state, Result: json.RawMessage(result), Note: "looked"}, nil
	})
}

// 3.3: a verifier registered for an effect's name settles an unfinished call, of a body
// or of a Do within one; it gets the handler's input.
func TestVerifyUnfinished(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	broken := func(context.Context) (int, error) { return 0, errors.New("connection reset") }
	workers.Handle(h.reg, "body", func(ctx context.Context, _ int) (int, error) {
		return broken(ctx)
	}, workers.Class(effects.Guarded))
	workers.Handle(h.reg, "inside", func(ctx context.Context, _ int) (int, error) { return effects.Do(ctx, "charge", broken) })
	workers.Handle(h.reg, "lost", func(ctx context.Context, _ int) (int, error) { return effects.Do(ctx, "ship", broken) })
	workers.Handle(h.reg, "silent", func(ctx context.Context, _ int) (int, error) { return effects.Do(ctx, "mail", broken) })
	asked := make(chan effects.Question, 2)
	workers.Verify(h.reg, "body", finds(effects.StateDone, "7", asked), effects.Human)
	workers.Verify(h.reg, "charge", finds(effects.StateDone, "8", asked), effects.Human)
	workers.Verify(h.reg, "ship", finds(effects.StateNotDone, "", nil), effects.Human)
	workers.Verify(h.reg, "mail", finds(effects.StateUnknown, "", nil), effects.Human)
	h.open()
	require.Equal(t, "7", string(h.one(ask("body", 1, `41`)).Output))
	require.Equal(t, "41", string((<-asked).Input))
	require.Equal(t, "8", string(h.one(ask("inside", 2, `42`)).Output))
	q := <-asked
	require.Equal(t, []any{"charge", "42", effects.Guarded, ",0,0"}, []any{q.Name, string(q.Input), q.Class, q.DAD})

	r := h.one(ask("lost", 3, `1`))
	failedWith(t, r, journal.ResponseFailedAttempt, 500, wire.ClassError, "connection reset; its verifier says that it was not done (looked)")
	failedWith(t, h.one(ask("silent", 4, `1`)), journal.ResponseParked, 500, wire.ClassParked, "its verifier was asked: it does not know whether it was done (looked)")
}

// E5, 3.3: what a run's effects say overrules the handler, whatever it does with the error. Only an explicit
// Fatal ends an activity whose call has no known outcome.
func TestEffectsOverruleTheHandler(t *testing.T) {
	t.Parallel()
	doubt := effect.Doubt{Name: "charge", Key: "k", Recorded: []byte("3")}
	strict, human := &effect.VerificationError{Doubt: doubt}, &effect.ConfirmError{Doubt: doubt}
	parked := &effects.ParkedError{Name: "charge", Key: "k", Err: errors.New("connection reset")}
	unknown := &effects.UnknownError{Name: "charge", Key: "k", Err: errors.New("connection reset")}
	for _, err := range []error{nil, errors.New("charging failed"), workers.Fail(402, "declined"), workers.Fatal(unknown)} {
		said := success("pay", []byte("9"))
		if err != nil {
			said = failure(err, false)
		}
		require.Equal(t, said, overruled(said, err, nil, false))
		failedWith(t, overruled(said, err, strict, false), journal.ResponseTerminal, 500, wire.ClassVerification,
			strict.Error())
		failedWith(t, overruled(said, err, parked, false), journal.ResponseParked, 500, wire.ClassParked, "connection reset")
		r := overruled(said, err, human, false)
		failedWith(t, r, journal.ResponseParked, 500, wire.ClassConfirm, human.Error())
		require.JSONEq(t, `{"effect":"k","name":"charge","recorded":3}`, string(r.Error.Data))
		if r = overruled(said, err, unknown, false); errors.As(err, new(*port.Fatal)) {
			require.Equal(t, journal.ResponseTerminal, r.Kind)
		} else {
			require.Equal(t, journal.ResponseFailedAttempt, r.Kind)
		}
	}
}

// 4.4: each guarded effect without a verifier is warned about once: bodies at the start,
// others when they are first called.
func TestEffectsWithoutAVerifierAreNamed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var log devtest.Log
	h.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	do := func(name string, class effects.Class) func(context.Context, int) (int, error) {
		return func(ctx context.Context, _ int) (int, error) {
			return effects.Do(ctx, name, func(context.Context) (int, error) { return 1, nil }, class)
		}
	}
	workers.Handle(h.reg, "body", do("inner", effects.Pure), workers.Class(effects.Guarded))
	workers.Handle(h.reg, "known", do("inner", effects.Pure), workers.Class(effects.Guarded))
	workers.Handle(h.reg, "pure", do("met", effects.Guarded))
	workers.Handle(h.reg, "safe", do("idem", effects.Idempotent))
	workers.Verify(h.reg, "known", finds(effects.StateUnknown, "", nil), effects.Warn)
	h.open()
	for i, topic := range []string{"body", "known", "pure", "pure", "safe", "body"} {
		h.one(ask(topic, byte(i), `1`))
	}
	named := []string{}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "has no verifier") {
			_, rest, _ := strings.Cut(line, "effect=")
			name, _, _ := strings.Cut(rest, " ")
			named = append(named, name)
		}
	}
	require.Equal(t, []string{"body", "met"}, named)
}

// 3.3: an operator's result that the handler cannot read parks the request again and says
// how to resolve it; there is no further attempt.
func TestAResultThatDoesNotFitIsParked(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	workers.Handle(h.reg, "pay", func(ctx context.Context, _ int) (int, error) {
		return effects.Do(ctx, "charge", func(context.Context) (int, error) { return 0, errors.New("cut off") })
	})
	h.open()
	q := ask("pay", 1, `1`)
	require.Equal(t, wire.ClassParked, h.one(q).Error.Class)
	key := h.store.Rows(guid(t, q))[0].Key
	h.store.Decide(guid(t, q), key, func(e *store.EffectRow) { e.State, e.Result = store.EffectCompleted, []byte(`"ch_81"`) })
	h.store.Expire(guid(t, q))
	h.send(q, 2)
	_, hint := h.answer()
	require.Equal(t, journal.ResponseParked, hint.Response.Kind)
	require.Equal(t, wire.ClassMisfit, hint.Response.Error.Class)
	require.Contains(t, hint.Response.Error.Message, `effect "charge" (key `+key.String()+`)`)
	require.Contains(t, hint.Response.Error.Message, "quipu dead retry --effect "+key.String())
}
