package effect

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect/port"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// MaxCalls bounds the effects of one run of a handler; the calls and branches of a durable function
// (E15).
const MaxCalls = 10_000

// Call is one call of Do with its options. A durable function gives it its place.
type Call struct {
	name     string
	class    effects.Class
	explicit string
	keyed    bool   // explicit is set
	args     []byte // canonical, nil for none
	once     bool
	attempts int
	verifier effects.Verifier // nil for none
	mode     effects.Mode     // of verifier
	result   reflect.Type     // of the effect; nil: any
	err      error            // about the first option that cannot be used
	key      journal.Digest   // of the recorded effect, once replayed

	// Only in calls that are not the user's effects.
	own    string // tells effects of the same name apart in keys
	placed bool   // the position is the key

	// Only in a durable function.
	place    Place // nil elsewhere
	position string
}

// newCall is a call without options.
func newCall(name string) *Call {
	c := &Call{name: name, class: effects.Guarded}
	if name == "" || len(name) > wire.MaxEffectName || !utf8.ValidString(name) || strings.ContainsAny(name, "\x00[") {
		c.fail(fmt.Errorf("its name has %d bytes: 1 to %d bytes of UTF-8 without U+0000 and '[' are allowed", len(name), wire.MaxEffectName))
	}
	return c
}

// readCall is the call that a handler has made.
func readCall(p *port.Call) *Call {
	c := newCall(p.Name)
	c.class, c.explicit, c.keyed, c.args, c.once, c.attempts = effects.Class(p.Class), p.Explicit, p.Keyed, p.Args,
		p.Once, p.Attempts
	if p.Verifier != nil {
		c.verifier, c.mode = p.Verifier.(effects.Verifier), effects.Mode(p.Mode)
	}
	if p.Err != nil {
		c.fail(p.Err)
	}
	return c
}

// last says that one more outcome "not done", after n of them, becomes the result (E5).
func (c *Call) last(n int) bool { return c.attempts > 0 && n+1 >= c.attempts }

func (c *Call) fail(err error) {
	if c.err == nil {
		c.err = fmt.Errorf("effect %.80q: %w: %w", c.name, effects.ErrUsage, err)
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
