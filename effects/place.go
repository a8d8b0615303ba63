package effects

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/journal/store"
)

// Placer gives the calls of a durable function their places (E15). Package durable
// implements it, and Config brings it in; without one the handler is no durable
// function, and its calls have no places.
type Placer interface {
	// Place begins a call: it gives the call its place with Call.At, and refuses it
	// where something else is recorded there. It does not return where the function
	// is to go no further.
	Place(ctx context.Context, c *Call) error
	// GiveUp lets the function make no further call.
	GiveUp()
}

// Place is the place of one call in a durable function (E15). The methods are for
// the goroutine of the call, but for Lost. Back and Begins do not return where the
// function is to go no further.
type Place interface {
	// End ends the call, however it ended.
	End()
	// Leave lets other calls of the function go on while this one is outside.
	Leave()
	// Back ends what Leave or Begins began.
	Back()
	// Begins is asked before the call does anything that is not recorded, and leaves
	// like Leave. Its error refuses it. started says that its start is recorded.
	Begins(ctx context.Context, started bool) error
	// Strays refuses an outcome that is recorded at another place.
	Strays(row *store.EffectRow) error
	// WentOn reports that the function went on with a recorded outcome "not done".
	WentOn(row *store.EffectRow) bool
	// Lost reports that what comes of the call has no consequence.
	Lost() bool
	// Stopping reports that the goroutine of the call is being ended.
	Stopping() bool
}

// ByPosition makes the position of a call in its durable function its key, instead
// of the arguments: package durable records values with it.
func ByPosition() Option { return optionFunc(func(c *Call) { c.placed = true }) }

// NotDurable refuses a call that is for durable functions, in another handler.
func NotDurable(call string) error {
	return fmt.Errorf("%s: %w: it is for durable functions, register the handler with workers.HandleDurable", call, ErrUsage)
}

// within marks the context of a body that can have no calls of its own, by what it
// is the body of: of a Tx effect, whose transaction may be rolled back, or of a
// compensation.
type within struct{}

// Body is the context of a body that can have no calls of its own, of the effect
// with that key; what names it in errors.
func Body(ctx context.Context, key, what string) context.Context {
	return context.WithValue(context.WithValue(ctx, keyOf{}, key), within{}, what)
}

// InBody reports that ctx is that of such a body.
func InBody(ctx context.Context) bool { return ctx.Value(within{}) != nil }

// Callable refuses a call within such a body.
func Callable(ctx context.Context, call fmt.Stringer) error {
	if outer, ok := ctx.Value(within{}).(string); ok {
		return fmt.Errorf("%s: %w: it is called inside %s, which can have no calls of its own", call, ErrUsage, outer)
	}
	return nil
}

// step begins a call: in a durable function it finds its place. The call ends with
// done, also where step fails.
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

// errStopped is what other handlers than durable functions get where a replay stops.
var errStopped = errors.New("the replay ends here, no outcome is recorded")

// outwards is asked before a call does anything that is not recorded.
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

// past says of a recorded outcome "not done" whether the function went on with it:
// then it is what every later run gets. Otherwise the effect runs again.
func (c *Call) past(row *store.EffectRow) error {
	if c.place == nil || row.Error == nil ||
		row.Error.Class == store.FailureVoided || row.Error.Class == store.FailureOperator || !c.place.WentOn(row) {
		return nil
	}
	return &FailedError{Name: c.name, Failure: *row.Error}
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
