package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/usercode"
)

// DefaultVerifyTimeout bounds one question to a verifier, unless VerifyWithin
// says otherwise.
const DefaultVerifyTimeout = 10 * time.Second

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
	// Verify answers within the bound of its question (VerifyWithin).
	Verify(ctx context.Context, q Question) (Answer, error)
}

// VerifierFunc is a function that is a Verifier.
type VerifierFunc func(ctx context.Context, q Question) (Answer, error)

// Verify calls f.
func (f VerifierFunc) Verify(ctx context.Context, q Question) (Answer, error) { return f(ctx, q) }

// Question asks a verifier whether an effect was done.
type Question struct {
	Identity                 // place in the job
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
	// wire.MaxResult bytes; only with StateDone. It is required for an unfinished effect,
	// which gets it as its result ("null" if empty). A completed effect is compared with
	// it; nil confirms the recorded result.
	Result json.RawMessage
	// Note is for the person who reads the answer, at most wire.MaxText bytes.
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
	return optionFunc(func(c *Call) {
		c.verifier, c.mode = v, mode
		if usercode.IsNil(v) || !mode.Valid() {
			c.fail("a verifier %T in mode %.40q: wanted is one in mode strict, warn or human", v, string(mode))
		}
	})
}

// VerifyWithin is v with another bound than DefaultVerifyTimeout, more than 0.
func VerifyWithin(v Verifier, bound time.Duration) Verifier {
	if usercode.IsNil(v) {
		return nil // Verify refuses it
	}
	return bounded{v, bound}
}

type bounded struct {
	Verifier
	bound time.Duration
}

// VerificationError says that a Strict verifier contradicts a completed effect: the
// activity ends with this error.
type VerificationError struct{ Doubt }

// Error names the effect.
func (e *VerificationError) Error() string { return e.text() }

// ConfirmError says that a Human verifier contradicts a completed effect: the request is
// parked.
type ConfirmError struct{ Doubt }

// Error names the effect and the commands that resolve it.
func (e *ConfirmError) Error() string {
	return e.text() + "; look outside, then `quipu dead done` with --result null if it was done as recorded, `quipu dead retry --effect " + e.Key +
		"` if it was not and is to run again, `quipu dead retry` to have its verifier asked again, or `quipu dead fail`"
}

// Doubt is a completed effect that its verifier contradicts.
type Doubt struct {
	Name     string
	Key      string
	Recorded []byte // canonical JSON
	Outside  []byte // the result that the verifier found; nil: the effect was not done
	Note     string // the verifier's
}

func (d *Doubt) text() string {
	what := "was not done"
	if d.Outside != nil {
		what = "was done with another result"
	}
	return fmt.Sprintf("effect %q (key %s) is recorded as done, and its verifier says that it %s%s", d.Name, d.Key, what, noted(d.Note))
}

func noted(note string) string {
	if note == "" {
		return ""
	}
	return " (" + note + ")"
}

// Data is the doubt as canonical JSON for programs: effect (the key), name, recorded and
// outside. The results are left out where they are over MaxFailureData.
func (d *Doubt) Data() []byte {
	v := struct {
		Effect   string          `json:"effect"`
		Name     string          `json:"name"`
		Recorded json.RawMessage `json:"recorded,omitempty"`
		Outside  json.RawMessage `json:"outside,omitempty"`
	}{d.Key, d.Name, d.Recorded, d.Outside}
	if len(d.Recorded)+len(d.Outside)+len(d.Name) > MaxFailureData-200 {
		v.Recorded, v.Outside = nil, nil
	}
	raw, _ := canonical.Marshal(v) // nil: the outside's is no JSON
	return raw
}
