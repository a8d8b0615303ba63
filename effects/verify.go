package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/canonical"
)

// DefaultVerifyTimeout bounds one question to a verifier, unless VerifyWithin
// says otherwise.
const DefaultVerifyTimeout = 10 * time.Second

// Verifier looks outside whether an effect was done (3.3). It changes nothing
// there, is safe for concurrent use, and keeps to the end of ctx. An error, a
// panic and a timeout are read as StateUnknown.
//
// StateNotDone of an unfinished effect says that it was not done and that the
// call that was cut off cannot do it any more: the effect runs again. Where the
// receiver may still be at work, the answer is StateUnknown.
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

// Question is what a verifier is asked: was this effect done?
type Question struct {
	Identity                 // its place in its job
	Name     string          // of the effect
	Explicit string          // its WithKey, "" for none
	Key      string          // 64 hexadecimal digits, as Key gave them to the call
	Class    Class           // Guarded or Idempotent
	Input    json.RawMessage // the handler's
	Args     json.RawMessage // its Args, canonical; nil for none
	Recorded json.RawMessage // the recorded result, canonical; nil: it is unfinished
}

// State is what a verifier found.
type State string

// The states of an effect outside.
const (
	StateDone    State = "done"
	StateNotDone State = "not_done"
	StateUnknown State = "unknown"
)

// Answer is what a verifier found.
type Answer struct {
	State State
	// Result is what the effect's function would have returned, as JSON, of at most
	// wire.MaxResult bytes; with StateDone only. An unfinished effect ends with it,
	// so there it is needed ("null" where the result is empty). A completed one is
	// compared with it; nil confirms whatever was recorded.
	Result json.RawMessage
	// Note is for the person who reads of it, at most wire.MaxText bytes.
	Note string
}

// Mode says what comes of a completed effect that the outside does not confirm:
// its verifier says that it was not done, or that it was done with another result
// (3.3).
type Mode string

// The modes.
const (
	// Strict ends the activity with an error of class "verification".
	Strict Mode = "strict"
	// Warn logs and counts it; the recorded result is used.
	Warn Mode = "warn"
	// Human parks the request with an error of class "confirm": a person says what
	// is right.
	Human Mode = "human"
)

// Valid reports whether m is one of the three modes.
func (m Mode) Valid() bool { return m == Strict || m == Warn || m == Human }

// Verify gives the effect a verifier. An unfinished Guarded effect, of a run that
// died or of a call that ended without a known outcome, is not parked but asked
// about: done, its result is recorded; not done, it may run again under the next
// key; unknown, it is parked. A completed effect, Guarded or Idempotent, is asked
// about before a later run gets its result, once in that run, and mode says what a
// disagreement comes to. What ended with an error is not asked about: nothing is
// said to have been done.
func Verify(v Verifier, mode Mode) Option {
	return optionFunc(func(c *Call) {
		c.verifier, c.mode = v, mode
		if v == nil || !mode.Valid() {
			c.fail("a verifier %T in mode %.40q: wanted is one in mode strict, warn or human", v, string(mode))
		}
	})
}

// VerifyWithin is v with another bound than DefaultVerifyTimeout, more than 0.
func VerifyWithin(v Verifier, bound time.Duration) Verifier { return bounded{v, bound} }

type bounded struct {
	Verifier
	bound time.Duration
}

// VerificationError says that the outside does not confirm a completed effect
// whose verifier is Strict: the activity ends with it.
type VerificationError struct{ Doubt }

// Error names the effect.
func (e *VerificationError) Error() string { return e.text() }

// ConfirmError says that the outside does not confirm a completed effect whose
// verifier asks a person: the request is parked.
type ConfirmError struct{ Doubt }

// Error names the effect and the commands that answer.
func (e *ConfirmError) Error() string {
	return e.text() + "; look outside, then `quipu dead done` with --result null if it was done as recorded, `quipu dead retry --effect " + e.Key +
		"` if it was not and is to run again, `quipu dead retry` to have its verifier asked again, or `quipu dead fail`"
}

// Doubt is a completed effect that its verifier does not confirm.
type Doubt struct {
	Name     string
	Key      string
	Recorded []byte // canonical JSON
	Outside  []byte // what the verifier says that the result is; nil: it was not done
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

// Data is the doubt for programs, canonical JSON: effect (the key), name,
// recorded and outside; without the results where these are over MaxFailureData.
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
	raw, err := json.Marshal(v)
	if err == nil {
		raw, err = canonical.Payload(raw)
	}
	if err != nil {
		return nil
	}
	return raw
}
