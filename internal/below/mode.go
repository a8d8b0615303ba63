package below

import "context"

// Mode is what no user of a Runtime sets: which checks a command does without, and how the
// engine commits and sends. All ways to commit and to send are correct; tests mix them and
// benchmarks compare them. The zero Mode is that of quipu.Open.
type Mode struct {
	Reads bool // only reads, so that no setting of a server can break the promise (S7)
	// AnyDatabase opens a database that is another one than the space's, for commands that look
	// (S13).
	AnyDatabase bool

	Stepwise bool // commits at every mark (C11)
	NoFold   bool // commits children's Leg1 apart (C11)
	NoLocal  bool // sends every request by NATS, even if a handler of the process is free (W7)
	// NoEarly leaves what a batch causes to later ones, and begins no handler before its cause has
	// committed (L2, L4).
	NoEarly bool
}

// Open is quipu.Open in a mode: it takes a quipu.Config and returns a *quipu.Runtime. The root
// package sets it.
var Open func(ctx context.Context, cfg any, how Mode) (runtime any, err error)
