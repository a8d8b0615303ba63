package effects

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/effect/port"
)

// Limits of options.
const (
	maxKey  = 200       // bytes of an explicit key
	maxArgs = 256 << 10 // bytes of the canonical arguments
)

// Class says how an effect is recorded, and what follows a crash in the middle of it
// (E3). A Class is an Option.
type Class string

// The classes.
const (
	// Pure is computation. Only its result is recorded; after a crash it runs again.
	Pure Class = "pure"
	// Tx is SQL in the journal's own Postgres, on a transaction that commits with the
	// result: exactly once. Only DoTx has this class.
	Tx Class = "tx"
	// Idempotent is a call to a receiver that dedupes on the key: after a crash it
	// runs again with the same key.
	Idempotent Class = "idempotent"
	// Guarded is any other call outside, and the default. After a crash it does not run
	// again by itself; its verifier is asked, or the request is parked for a person.
	Guarded Class = "guarded"
)

// Valid reports whether c is one of the four classes.
func (c Class) Valid() bool { return c == Pure || c == Tx || c == Idempotent || c == Guarded }

// Option changes one call of Do: a Class, WithKey, Args, Once, Attempts or Verify.
type Option interface{ apply(c *port.Call) }

type optionFunc func(*port.Call)

func (f optionFunc) apply(c *port.Call) { f(c) }

func (c Class) apply(to *port.Call) {
	to.Class = string(c)
	if !c.Valid() {
		refuse(to, fmt.Errorf("class %.40q is none of pure, tx, idempotent, guarded", string(c)))
	}
}

// WithKey sets the explicit key, which tells the calls of a loop apart (E2). It is unique
// among the calls of one run, whatever their names: 1 to 200 bytes of UTF-8. The
// arguments are then not part of the key, and a replay with other arguments is refused.
func WithKey(key string) Option {
	return optionFunc(func(c *port.Call) {
		c.Explicit, c.Keyed = key, true
		if key == "" || len(key) > maxKey || !utf8.ValidString(key) || strings.Contains(key, "\x00") {
			refuse(c, fmt.Errorf("explicit key %.40q has %d bytes: 1 to %d bytes of UTF-8 without U+0000 are allowed", key, len(key), maxKey))
		}
	})
}

// Args names the arguments: any value that marshals to JSON, up to 256 KiB.
// Without an explicit key they are part of the key, so that calls with different
// arguments are different effects.
func Args(v any) Option {
	return optionFunc(func(c *port.Call) {
		raw, err := canonical.Marshal(v)
		switch {
		case err != nil:
			refuse(c, fmt.Errorf("arguments cannot be written as JSON: %w", err))
		case len(raw) > maxArgs:
			refuse(c, fmt.Errorf("arguments have %d bytes, the limit is %d: use WithKey, or their digest", len(raw), maxArgs))
		}
		c.Args = raw
	})
}

// Once allows the same key again within one run: later calls get the outcome of the first
// (E2).
func Once() Option { return optionFunc(func(c *port.Call) { c.Once = true }) }

// Attempts ends the effect after n outcomes NotDone (1 to 1000): the last becomes
// its result, and replays as that error (E5). Default: no limit.
func Attempts(n int) Option {
	return optionFunc(func(c *port.Call) {
		c.Attempts = n
		if n < 1 || n > port.MaxAttempts {
			refuse(c, fmt.Errorf("%d attempts: 1 to %d are allowed", n, port.MaxAttempts))
		}
	})
}

func call(name string, class Class, options []Option) *port.Call {
	c := &port.Call{Name: name, Class: string(class)}
	for _, o := range options {
		o.apply(c)
	}
	return c
}

// refuse keeps why the call cannot be made; the run says it with the name of the effect.
func refuse(c *port.Call, err error) {
	if c.Err == nil {
		c.Err = err
	}
}
