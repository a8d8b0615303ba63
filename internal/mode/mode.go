package mode

import "context"

// Mode is how a runtime commits and sends.
type Mode struct {
	Stepwise bool // commits at every mark (C11)
	NoFold   bool // keeps children's Leg1 apart (C11)
	NoLocal  bool // sends every request by NATS, also those that handlers of the process have room for (W7)
}

type key struct{}

// With gives the mode to the Open that is called with the context.
func With(ctx context.Context, m Mode) context.Context { return context.WithValue(ctx, key{}, m) }

// From is the mode of a context; by default none of its ways is taken.
func From(ctx context.Context) Mode {
	m, _ := ctx.Value(key{}).(Mode)
	return m
}
