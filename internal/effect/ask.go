package effect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/effect/port"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// verifyTimeout bounds one question to a verifier, unless effects.VerifyWithin says otherwise.
const verifyTimeout = 10 * time.Second

// These say why a verifier could not decide, or what cut an effect off.
var (
	errSilent   = errors.New("it does not know whether it was done")
	errNoResult = errors.New("it says that it was done, and not with what result")
	errGone     = errors.New("it ended its goroutine (runtime.Goexit)")
	errLate     = errors.New("it did not answer in time")
	errCutOff   = errors.New("the run that called it died or lost its lease")
)

// arm gives the call the verifier registered for its name, unless it has one of its own.
// A run that does nothing outside does not ask outside either.
func (s *Session) arm(c *Call) {
	s.mu.Lock()
	undone := s.undone
	s.mu.Unlock()
	if c.class != effects.Guarded && c.class != effects.Idempotent || s.cfg.Frozen || undone {
		c.verifier = nil
		return
	}
	if c.verifier == nil && s.cfg.Verifier != nil {
		c.verifier, c.mode = s.cfg.Verifier(c.name, c.class)
	}
}

// settle decides about a Guarded effect that began and has no outcome: it asks the
// verifier, and parks the effect where that does not decide (E4, E5). cause is the error
// of fn; nil after a crash. A NotDone error says that the effect was not done and may run
// again under the next key.
func (s *Session) settle(ctx context.Context, c *Call, e journal.Effect, cause error) ([]byte, error) {
	asked := time.Now()
	a, silent := s.inquire(ctx, c, e.Key)
	if a.State == effects.StateDone || a.State == effects.StateNotDone {
		e.Finding = &journal.Finding{
			Verifier: nameOf(c.verifier), Asked: asked.UnixMicro(), Took: time.Since(asked).Microseconds(),
			Note: a.Note,
		}
		if cause != nil {
			e.Finding.Error = s.tell(cause).failure.Message
		}
		s.warn("a call brought no outcome: its verifier found it", c, e.Key, "answer", string(a.State), "verifier", e.Finding.Verifier)
	}
	switch a.State {
	case effects.StateDone:
		e.Result = a.Result
		return s.record(ctx, c, e, nil)
	case effects.StateNotDone:
	default:
		s.count(c, "parked")
		return nil, s.judge(c, &effects.ParkedError{Name: c.name, Key: e.Key.String(), Err: cause, Verifier: silent})
	}
	if cause == nil {
		cause = errCutOff
	}
	verified := fmt.Errorf("%w; its verifier says that it was not done%s", cause, noted(a.Note))
	end := s.tell(verified)
	e.Error = end.failure
	if c.last(e.N) {
		e.Result = codeJSON(end.code)
		return s.record(ctx, c, e, nil)
	}
	return s.record(ctx, c, e, effects.NotDone(verified))
}

// bounded is a verifier of effects.VerifyWithin.
type bounded interface {
	Bound() time.Duration
	Unwrap() effects.Verifier
}

// nameOf says which verifier it is: its type, or the name of its function.
func nameOf(v effects.Verifier) string {
	if b, ok := v.(bounded); ok {
		v = b.Unwrap()
	}
	if f, ok := v.(effects.VerifierFunc); ok {
		return wire.CutText(runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name())
	}
	return wire.CutText(strings.TrimPrefix(fmt.Sprintf("%T", v), "*"))
}

// inquire asks the verifier about an unfinished effect. Where the answer does not decide,
// silent is the reason; it is nil without a verifier. The end of the run's context does
// not cut the question off, because nobody else would ask. A run that lost its request
// does not ask: the run that has it now will.
func (s *Session) inquire(ctx context.Context, c *Call, key journal.Digest) (a effects.Answer, silent error) {
	cause := usercode.Chain(context.Cause(ctx)) // fn may have made the context
	if c.verifier == nil || usercode.Is(cause, store.ErrStale) || usercode.Is(cause, store.ErrJobClosed) ||
		usercode.Is(cause, store.ErrLeased) {
		return a, nil
	}
	s.fly(c, key)
	defer s.land(c)
	a, err := s.ask(context.WithoutCancel(ctx), c, key, nil)
	switch {
	case err != nil:
		silent = err
	case a.State == effects.StateUnknown:
		silent = fmt.Errorf("%w%s", errSilent, noted(a.Note))
	case a.State == effects.StateDone && a.Result == nil:
		silent = fmt.Errorf("%w%s", errNoResult, noted(a.Note))
	}
	if silent != nil {
		a.State = effects.StateUnknown
	}
	s.tally(c, string(a.State))
	return a, silent
}

// confirm asks whether the outside confirms a completed effect, before a later run gets
// its result. A verifier that does not know contradicts nothing.
func (s *Session) confirm(ctx context.Context, c *Call, row *store.EffectRow) error {
	if c.verifier == nil || row.Error != nil || row.Vouched {
		return nil
	}
	c.leave()
	a, err := s.ask(ctx, c, row.Key, row.Result)
	if err != nil || a.State == effects.StateUnknown {
		s.tally(c, "unconfirmed")
		why := "unknown"
		if errors.Is(err, errLate) {
			why = "late"
		} else if err != nil {
			why = "failed"
		}
		s.warn("an effect could not be verified: its recorded result is used", c, row.Key, "answer", why)
		return nil
	}
	if a.State == effects.StateDone && (a.Result == nil || bytes.Equal(a.Result, row.Result)) {
		s.tally(c, "confirmed")
		return nil
	}
	s.tally(c, "contradicted")
	d := Doubt{Name: c.name, Key: row.Key.String(), Recorded: row.Result, Note: a.Note}
	if a.State == effects.StateDone {
		d.Outside = a.Result
	}
	switch c.mode {
	case effects.Strict:
		return s.judge(c, &VerificationError{d})
	case effects.Human:
		return s.judge(c, &ConfirmError{d})
	}
	s.warn("an effect is not what its verifier finds: its recorded result is used", c, row.Key, "answer", string(a.State))
	return nil
}

// ask runs the verifier in its own goroutine, so that a verifier that ignores its context
// holds nobody up.
func (s *Session) ask(ctx context.Context, c *Call, key journal.Digest, recorded []byte) (effects.Answer, error) {
	bound := verifyTimeout
	if b, ok := c.verifier.(bounded); ok {
		bound = b.Bound()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, bound, errLate)
	defer cancel()
	id := &s.cfg.Identity
	q := effects.Question{
		Space: id.Space, Job: id.Job, Generation: id.Generation, Version: id.Version, Activity: id.Activity,
		DAD: id.DAD, Element: id.Element,
		Name: c.name, Explicit: c.explicit, Key: key.String(), Class: c.class,
		Input: s.cfg.Input, Args: c.args, Recorded: recorded,
	}
	type reply struct {
		answer effects.Answer
		err    error
	}
	replies := make(chan reply, 1)
	// The verifier's own calls are no effects of the handler.
	within := port.WithEffect(With(ctx, nil), q.Key)
	go func() {
		r := reply{err: errGone}
		defer func() {
			if v := recover(); v != nil {
				r.err = errors.New("it panicked: " + usercode.Value(v))
			}
			replies <- r
		}()
		answer, err := c.verifier.Verify(within, q)
		r = reply{answer, usercode.Read(err)}
	}()
	select {
	case r := <-replies:
		return readAnswer(r.answer, c, r.err)
	case <-ctx.Done():
		if cause := context.Cause(ctx); cause != errLate {
			return effects.Answer{}, usercode.Read(cause)
		}
		return effects.Answer{}, errLate
	}
}

// readAnswer checks an answer; an unusable answer is an error.
func readAnswer(a effects.Answer, c *Call, err error) (effects.Answer, error) {
	if err != nil {
		return effects.Answer{}, err
	}
	a.Note = wire.CutText(a.Note)
	switch {
	case a.State != effects.StateDone && a.State != effects.StateNotDone && a.State != effects.StateUnknown:
		return effects.Answer{}, fmt.Errorf("its answer %.40q is none of done, not_done, unknown", string(a.State))
	case a.State != effects.StateDone || len(a.Result) == 0:
		a.Result = nil
		return a, nil
	}
	raw, err := canonical.Payload(a.Result)
	if len(raw) > wire.MaxResult {
		return effects.Answer{}, fmt.Errorf("its result has %d bytes in its canonical form, the limit is %d", len(raw), wire.MaxResult)
	}
	if err == nil && c.result != nil {
		err = json.Unmarshal(raw, reflect.New(c.result).Interface())
	}
	if err != nil {
		return effects.Answer{}, fmt.Errorf("its result cannot be that of the effect: %w", err)
	}
	a.Result = raw
	return a, nil
}

func (s *Session) tally(c *Call, outcome string) {
	s.cfg.Observer.Count(observer.MetricVerified, 1, "mode", string(c.mode), "outcome", outcome)
}

func (s *Session) warn(message string, c *Call, key journal.Digest, more ...any) {
	if s.cfg.Warn != nil {
		s.cfg.Warn(message, append([]any{"effect", c.label(), "key", key.String()}, more...)...)
	}
}
