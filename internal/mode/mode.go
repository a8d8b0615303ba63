package mode

import "context"

// Mode is how a runtime commits and sends.
type Mode struct {
	Stepwise bool // commits at every mark (C11)
	NoFold   bool // commits children's Leg1 apart (C11)
	Reads    bool // only reads, so that no setting of a server can break the promise (S7)
	// AnyDatabase opens a database that is another one than the space's, for commands that look
	// (S13).
	AnyDatabase bool
	NoLocal     bool // sends every request by NATS, even if a handler of the process is free (W7)
}

type key struct{}

// With passes the mode to an Open that gets the returned context.
func With(ctx context.Context, m Mode) context.Context { return context.WithValue(ctx, key{}, m) }

// From returns the mode of a context; the zero Mode by default.
func From(ctx context.Context) Mode {
	m, _ := ctx.Value(key{}).(Mode)
	return m
}
