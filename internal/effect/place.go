package effect

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect/port"
	"github.com/quipu-journal/quipu/internal/store"
)

// Placer gives the calls of a durable function their places (E15). Package durable
// implements it, and Config passes it in. Without a Placer the handler is no durable
// function, and its calls have no places.
type Placer interface {
	// Place begins a call: it sets the place with Call.At, or refuses the call where
	// something else is recorded there. It does not return where the function must stop.
	Place(ctx context.Context, c *Call) error
	// GiveUp stops the function at its next call.
	GiveUp()
}

// Place is the place of one call in a durable function (E15). All methods except Lost
// belong to the goroutine of the call. Back and Begins do not return where the function
// must stop.
type Place interface {
	// End ends the call, however it ended.
	End()
	// Leave lets other calls of the function go on while this one is outside.
	Leave()
	// Back ends what Leave or Begins began: the call is inside again.
	Back()
	// Begins is called before the call does anything that is not recorded. It includes a
	// Leave; its error refuses the call. started says that the start is recorded.
	Begins(ctx context.Context, started bool) error
	// Strays refuses an outcome that is recorded at another place.
	Strays(row *store.EffectRow) error
	// WentOn reports that the function went on after a recorded outcome "not done".
	WentOn(row *store.EffectRow) bool
	// Lost reports that the outcome of the call no longer matters.
	Lost() bool
	// Stopping reports that the goroutine of the call is being ended.
	Stopping() bool
}

// NotDurable is the error of a call for durable functions in another handler.
func NotDurable(call string) error {
	return fmt.Errorf("%s: %w: it is for durable functions, register the handler with workers.HandleDurable", call, effects.ErrUsage)
}

// within marks the context of a body that cannot make calls of its own, with a name for
// the body: a Tx effect, whose transaction may be rolled back, or a compensation.
type within struct{}

// Body is the context for a body that cannot make calls of its own. key is that of its
// effect; what names the body in errors.
func Body(ctx context.Context, key, what string) context.Context {
	return context.WithValue(port.WithEffect(ctx, key), within{}, what)
}

// InBody reports that ctx is that of a Body.
func InBody(ctx context.Context) bool { return ctx.Value(within{}) != nil }

// Callable refuses a call within a Body.
func Callable(ctx context.Context, call fmt.Stringer) error {
	if outer, ok := ctx.Value(within{}).(string); ok {
		return fmt.Errorf("%s: %w: it is called inside %s, which can have no calls of its own", call, effects.ErrUsage, outer)
	}
	return nil
}

// step begins a call; in a durable function it finds the call's place. Call done
// afterwards, even if step fails.
func (s *Session) step(ctx context.Context, c *Call) error {
	if err := Callable(ctx, c); err != nil {
		return err
	}
	switch {
	case s.cfg.Placer != nil:
		return s.cfg.Placer.Place(ctx, c)
	case c.placed:
		return NotDurable(c.String())
	}
	return nil
}

// errStopped ends a replay of a handler that is no durable function, where its record
// ends.
var errStopped = errors.New("the replay ends here, no outcome is recorded")

// outwards is called before a call does anything that is not recorded.
func (s *Session) outwards(ctx context.Context, c *Call, started bool) error {
	switch {
	case c.place != nil:
		return c.place.Begins(ctx, started)
	case s.cfg.Frozen:
		s.StopAt(Unrecorded{Call: c.String(), Started: started})
		return fmt.Errorf("%s: %w", c, errStopped)
	}
	return nil
}

// past gives the recorded outcome "not done" to a function that went on after it: every
// later run gets it. Otherwise it is nil, and the effect runs again.
func (c *Call) past(row *store.EffectRow) error {
	if c.place == nil || row.Error == nil ||
		row.Error.Class == store.FailureVoided || row.Error.Class == store.FailureOperator || !c.place.WentOn(row) {
		return nil
	}
	return &effects.FailedError{Name: c.name, Failure: *row.Error}
}

func (c *Call) strays(row *store.EffectRow) error {
	if c.place == nil {
		return nil
	}
	return c.place.Strays(row)
}

func (c *Call) leave() {
	if c.place != nil {
		c.place.Leave()
	}
}

func (c *Call) back() {
	if c.place != nil {
		c.place.Back()
	}
}

func (c *Call) done() {
	if c.place != nil {
		c.place.End()
	}
}
