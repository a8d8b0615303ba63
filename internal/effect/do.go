package effect

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/effect/port"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/internal/wire"
)

// Do implements port.Run.
func (s *Session) Do(
	ctx context.Context, c *port.Call, body func(ctx context.Context, tx any) (any, error), into any,
) error {
	return s.Perform(ctx, readCall(c), body, into)
}

// Perform is Do for an own call: its result is read into what into points to.
func (s *Session) Perform(
	ctx context.Context, c *Call, body func(ctx context.Context, tx any) (any, error), into any,
) error {
	c.result = reflect.TypeOf(into).Elem()
	raw, err := s.do(ctx, c, func(ctx context.Context, tx any) ([]byte, error) {
		v, err := body(ctx, tx)
		if err != nil {
			return nil, err
		}
		return encode(v)
	})
	if err != nil || len(raw) == 0 {
		return err
	}
	// The first run, too, returns the recorded value and not what the body returned, so that a
	// handler sees the same value in every run.
	if err := json.Unmarshal(raw, into); err != nil {
		return s.misfit(c, err)
	}
	return nil
}

// misfit is the error for a recorded result that does not fit its type.
func (s *Session) misfit(c *Call, err error) error {
	switch {
	case c.place == nil && (c.class == effects.Guarded || c.class == effects.Idempotent):
		return s.judge(c, &MisfitError{Name: c.name, Key: c.key.String(), Type: c.result.String(), Err: err})
	case c.place == nil:
		return fmt.Errorf("effect %q: its recorded result does not fit into %s: %w", c.name, c.result, err)
	}
	return s.judge(c, &effects.NondeterminismError{
		Position: c.position, Asked: fmt.Sprintf("%s with a result of type %s", c, c.result), Recorded: fmt.Sprintf("one that does not fit it (%v)", err),
	})
}

// encode gives the canonical bytes of a result. A result that cannot be recorded becomes
// a recorded error: the outside was reached, so the body must not run again.
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

// unusable is a result that cannot be recorded. That is the outcome: it is an error that is a result.
type unusable struct{ class, message string }

func (e *unusable) Error() string { return e.message }
