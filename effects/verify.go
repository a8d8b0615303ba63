package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/internal/effect/port"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/journal"
)

// Verifier finds out outside whether an effect was done (3.3). It must change nothing
// there, be safe for concurrent use, and return when ctx ends. An error, a panic and a
// timeout count as StateUnknown.
//
// StateNotDone for an unfinished effect says that it was not done and that the call that
// was cut off can no longer do it: the effect runs again. While the receiver may still be
// at work, the answer must be StateUnknown.
//
// Within Verify, Key(ctx) is the effect's key, and Do calls its function and
// nothing else.
type Verifier interface {
	// Verify answers within 10 s, unless VerifyWithin gives it another bound.
	Verify(ctx context.Context, q Question) (Answer, error)
}

// VerifierFunc is a function that is a Verifier.
type VerifierFunc func(ctx context.Context, q Question) (Answer, error)

// Verify calls f.
func (f VerifierFunc) Verify(ctx context.Context, q Question) (Answer, error) { return f(ctx, q) }

// Question asks a verifier whether an effect was done.
type Question struct {
	// The place of the handler's run within its job. A job that resumes another has that of the
	// first one.
	Space         string
	Job           journal.JobID
	Generation    int64
	Version       string // of the flow
	Activity, DAD string
	Element       int // index under each

	Name     string          // of the effect
	Explicit string          // its WithKey, "" for none
	Key      string          // 64 hexadecimal digits, as Key gave them to the call
	Class    Class           // Guarded or Idempotent
	Input    json.RawMessage // the handler's
	Args     json.RawMessage // its Args, canonical; nil for none
	Recorded json.RawMessage // canonical result; nil if the effect is unfinished
}

// State is the finding of a verifier.
type State string

// The findings of a verifier.
const (
	StateDone    State = "done"
	StateNotDone State = "not_done"
	StateUnknown State = "unknown"
)

// Answer is the finding of a verifier, with its details.
type Answer struct {
	State State
	// Result is what the effect's function would have returned, as JSON of at most
	// 1 MiB; only with StateDone. It is required for an unfinished effect,
	// which gets it as its result ("null" if empty). A completed effect is compared with
	// it; nil confirms the recorded result.
	Result json.RawMessage
	// Note is for the person who reads the answer, at most 16 KiB.
	Note string
}

// Mode says what follows when a verifier contradicts a completed effect: it was not done,
// or it was done with another result (3.3).
type Mode string

const (
	// Strict ends the activity with an error of class "verification".
	Strict Mode = "strict"
	// Warn logs and counts the contradiction; the recorded result is used.
	Warn Mode = "warn"
	// Human parks the request with an error of class "confirm", and a person decides.
	Human Mode = "human"
)

// Valid reports whether m is one of the three modes.
func (m Mode) Valid() bool { return m == Strict || m == Warn || m == Human }

// Verify gives the effect a verifier. It is asked about an unfinished Guarded effect,
// after a crash or an unknown outcome, before anything is parked: if the effect was done,
// its result is recorded; if not, it may run again under the next key; if unknown, it is
// parked. It is also asked about a completed effect, Guarded or Idempotent, once in each
// later run before that run gets the result; mode says what follows a contradiction. An
// effect that ended with an error is not asked about.
func Verify(v Verifier, mode Mode) Option {
	return optionFunc(func(c *port.Call) {
		c.Verifier, c.Mode = v, string(mode)
		if usercode.IsNil(v) || !mode.Valid() {
			refuse(c, fmt.Errorf("a verifier %T in mode %.40q: wanted is one in mode strict, warn or human", v, string(mode)))
		}
	})
}

// VerifyWithin is v with another bound than 10 s, more than 0.
func VerifyWithin(v Verifier, bound time.Duration) Verifier {
	if usercode.IsNil(v) {
		return nil // Verify refuses it
	}
	return bounded{v, bound}
}

// bounded tells the machine the bound and the verifier by its methods.
type bounded struct {
	Verifier
	bound time.Duration
}

// Bound is how long one question may take.
func (b bounded) Bound() time.Duration { return b.bound }

// Unwrap gives the verifier that was bounded.
func (b bounded) Unwrap() Verifier { return b.Verifier }
