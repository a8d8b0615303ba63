package effects

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of a call of Do.
const (
	MaxName     = 200       // bytes of an effect's name
	MaxKey      = 200       // bytes of an explicit key
	MaxArgs     = 256 << 10 // bytes of the canonical arguments
	MaxAttempts = 1000      // outcomes "not done" of one effect (E5)
	MaxCalls    = 10_000    // effects of one run of a handler; calls and branches of a durable function (E15)

	// MaxFailureData bounds the data of an error, bytes of canonical JSON.
	MaxFailureData = 64 << 10
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
type Option interface{ apply(c *Call) }

// Call is one call of Do with its options. Handlers do not see it; package durable gives
// it its place.
type Call struct {
	name     string
	class    Class
	explicit string
	keyed    bool   // explicit is set
	args     []byte // canonical, nil for none
	once     bool
	attempts int
	verifier Verifier           // nil for none
	mode     Mode               // of verifier
	fits     func([]byte) error // reports by its error whether bytes can be the result
	err      error              // about the first option that cannot be used
	key      journal.Digest     // of the recorded effect, once replayed

	// Only in calls that are not the user's effects.
	own    string // tells effects of the same name apart in keys
	placed bool   // the position is the key

	// Only in a durable function.
	place    Place // nil elsewhere
	position string
}

type optionFunc func(*Call)

func (f optionFunc) apply(c *Call) { f(c) }

func (c Class) apply(to *Call) {
	to.class = c
	if !c.Valid() {
		to.fail("class %.40q is none of pure, tx, idempotent, guarded", string(c))
	}
}

// WithKey sets the explicit key, which tells the calls of a loop apart (E2). It is unique
// among the calls of one run, whatever their names: 1 to MaxKey bytes of UTF-8. The
// arguments are then not part of the key, and a replay with other arguments is refused.
func WithKey(key string) Option {
	return optionFunc(func(c *Call) {
		c.explicit, c.keyed = key, true
		if key == "" || len(key) > MaxKey || !plain(key) {
			c.fail("explicit key %.40q has %d bytes: 1 to %d bytes of UTF-8 without U+0000 are allowed", key, len(key), MaxKey)
		}
	})
}

// Args names the arguments: any value that marshals to JSON, up to MaxArgs bytes.
// Without an explicit key they are part of the key, so that calls with different
// arguments are different effects.
func Args(v any) Option {
	return optionFunc(func(c *Call) {
		raw, err := canonical.Marshal(v)
		switch {
		case err != nil:
			c.fail("arguments cannot be written as JSON: %w", err)
		case len(raw) > MaxArgs:
			c.fail("arguments have %d bytes, the limit is %d: use WithKey, or their digest", len(raw), MaxArgs)
		}
		c.args = raw
	})
}

// Once allows the same key again within one run: later calls get the outcome of the first
// (E2).
func Once() Option { return optionFunc(func(c *Call) { c.once = true }) }

// Attempts ends the effect after n outcomes NotDone (1 to MaxAttempts): the last becomes
// its result, and replays as that error (E5). Default: no limit.
func Attempts(n int) Option {
	return optionFunc(func(c *Call) {
		c.attempts = n
		if n < 1 || n > MaxAttempts {
			c.fail("%d attempts: 1 to %d are allowed", n, MaxAttempts)
		}
	})
}

func newCall(name string, options []Option) *Call {
	c := &Call{name: name, class: Guarded}
	if name == "" || len(name) > MaxName || !plain(name) || strings.Contains(name, "[") {
		c.fail("its name has %d bytes: 1 to %d bytes of UTF-8 without U+0000 and '[' are allowed", len(name), MaxName)
	}
	for _, o := range options {
		o.apply(c)
	}
	return c
}

// outside makes a call of Do.
func outside(name string, options []Option) *Call {
	c := newCall(name, options)
	if c.class == Tx && c.err == nil {
		c.err = fmt.Errorf("effect %q: %w", c.name, ErrTx)
	}
	if c.class == Pure && c.verifier != nil {
		c.fail("a verifier, and class pure: there is nothing outside to be verified")
	}
	return c
}

// inside makes a call of DoTx.
func inside(name string, options []Option) *Call {
	c := newCall(name, append([]Option{Tx}, options...))
	if c.class != Tx {
		c.fail("class %s: DoTx is of class tx", string(c.class))
	}
	if c.verifier != nil {
		c.fail("a verifier, and class tx: it commits with its result, there is nothing to be verified")
	}
	return c
}

// last says that one more outcome "not done", after n of them, becomes the result (E5).
func (c *Call) last(n int) bool { return c.attempts > 0 && n+1 >= c.attempts }

func (c *Call) fail(format string, a ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("effect %.80q: %w: "+format, append([]any{c.name, ErrUsage}, a...)...)
	}
}

// label is the name under which the effect is recorded. It contains the explicit key and
// the digest of the arguments, so that a replay can be compared with it (E2).
func (c *Call) label() string {
	switch {
	case !c.keyed:
		return c.name
	case c.args == nil:
		return c.name + "[" + c.explicit + "]"
	}
	return c.name + "[" + c.explicit + "]{" + argsDigest(c.args) + "}"
}

// explicitOf reads the explicit key out of a label. Names contain no '[', and the last
// byte says whether the label has a digest.
func explicitOf(label string) (key string, keyed bool) {
	_, rest, keyed := strings.Cut(label, "[")
	if !keyed {
		return "", false
	}
	if strings.HasSuffix(rest, "}") && len(rest) > argsSuffix {
		rest = rest[:len(rest)-argsSuffix]
	}
	return strings.TrimSuffix(rest, "]"), true
}

// String names the call for errors.
func (c *Call) String() string { return "effect " + strconv.Quote(c.label()) }

// pass identifies the call among those of one run (E2).
func (c *Call) pass() string {
	switch {
	case c.keyed:
		return "k" + c.explicit
	case c.placed:
		return "p" + c.position
	case c.own != "":
		return "o" + c.name + "\x00" + c.own
	}
	return "n" + c.name + "\x00" + string(c.args)
}

func plain(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
