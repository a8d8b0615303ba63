package effect

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/wire"
)

// A handler can do nothing about the errors of this file but return them: the runtime acts on them,
// whatever the handler says.

// ErrBusy says that another run holds the request or the effect. The runtime hands
// the request back (E4).
var ErrBusy = errors.New("the effect is under way in another run: the request is handed back")

// TooManyCalls is the error of a run that made more than MaxCalls effects, or of a durable
// function that made more than MaxCalls calls.
func TooManyCalls(call string) error {
	return fmt.Errorf("%s: %w: more than %d calls in one run: split the work into several activities, that of a durable function with workers.Child",
		call, effects.ErrUsage, MaxCalls)
}

// DuplicateError says that one run asked twice for the same effect (E2), wait or
// compensation.
type DuplicateError struct {
	First, Second string
	Kind          string // sleep, signal, child or compensation; "" for effects
}

// Error says what to do.
func (e *DuplicateError) Error() string {
	if e.Kind != "" {
		return fmt.Sprintf("%s %q was asked for twice in one run: give each its own name", e.Kind, e.First)
	}
	if e.First == e.Second {
		return fmt.Sprintf("effect %q was called twice in one run: give each call its own effects.WithKey, or effects.Once if they are one", e.First)
	}
	return fmt.Sprintf("effects %q and %q have the same explicit key in one run: an explicit key belongs to one effect, put the name into it", e.First, e.Second)
}

// Unwrap gives effects.ErrUsage.
func (e *DuplicateError) Unwrap() error { return effects.ErrUsage }

// busyError wraps ErrBusy with the effect's name.
type busyError struct {
	name string
	err  error
}

func (e *busyError) Error() string   { return fmt.Sprintf("effect %q: %v: %v", e.name, ErrBusy, e.err) }
func (e *busyError) Unwrap() []error { return []error{ErrBusy, e.err} }

// MisfitError says that a recorded result, perhaps one that an operator gave, does not
// fit the type that the handler wants. Every run would fail on it, so the request is
// parked.
type MisfitError struct {
	Name string // of the effect
	Key  string
	Type string // the type that the handler wants
	Err  error
}

// Error names the effect and the commands that resolve it.
func (e *MisfitError) Error() string {
	return fmt.Sprintf("effect %q (key %s) has a recorded result that does not fit into %s: %v; `quipu dead resolve` ends the request "+
		"with a result, `quipu dead fail` with an error, `quipu dead retry --effect %s` makes the call again under the next key, "+
		"and `quipu dead retry` tries a handler that can read it", e.Name, e.Key, e.Type, e.Err, e.Key)
}

// Unwrap gives the decoder's error.
func (e *MisfitError) Unwrap() error { return e.Err }

// StoreError says that the journal could not be used. Nothing is concluded; the request
// is handed back and run again (C10).
type StoreError struct {
	Name string // of the effect, "" for none
	Op   string
	Err  error
}

// Error names operation and effect.
func (e *StoreError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("effect %q: %s: %v", e.Name, e.Op, e.Err)
}

// Unwrap gives the store's error: store.ErrStale, store.ErrJobClosed, …
func (e *StoreError) Unwrap() error { return e.Err }

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
// outside. The results are left out where they are over wire.MaxFailureData.
func (d *Doubt) Data() []byte {
	v := struct {
		Effect   string          `json:"effect"`
		Name     string          `json:"name"`
		Recorded json.RawMessage `json:"recorded,omitempty"`
		Outside  json.RawMessage `json:"outside,omitempty"`
	}{d.Key, d.Name, d.Recorded, d.Outside}
	if len(d.Recorded)+len(d.Outside)+len(d.Name) > wire.MaxFailureData-200 {
		v.Recorded, v.Outside = nil, nil
	}
	raw, _ := canonical.Marshal(v) // nil: the outside's is no JSON
	return raw
}
