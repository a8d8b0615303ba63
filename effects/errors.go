package effects

import (
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/journal"
)

// Errors on which a caller decides.
var (
	// ErrUsage is wrapped by errors about a call that can never work: a bad name,
	// key, class or argument.
	ErrUsage = errors.New("the effect cannot be called like this")
	// ErrTx refuses class Tx where there is no transaction for it: Tx belongs to
	// DoTx.
	ErrTx = errors.New("class tx needs a transaction: use quipu.DoTx")
	// ErrBusy says that another run's lease on the request or the effect is alive:
	// the runtime hands the request back (E4).
	ErrBusy = errors.New("the effect is under way in another run: the request is handed back")
	// ErrTooManyCalls says that a run has MaxCalls effects.
	ErrTooManyCalls = fmt.Errorf("more than %d effects in one run: split the work into several activities", MaxCalls)
)

// NotDone marks err: the effect was definitely not applied. It may run again,
// under the next key (E5). NotDone(nil) is nil.
func NotDone(err error) error {
	if err == nil {
		return nil
	}
	return &notDoneError{err}
}

type notDoneError struct{ err error }

func (e *notDoneError) Error() string { return e.err.Error() }
func (e *notDoneError) Unwrap() error { return e.err }

// IsNotDone reports whether err was marked by NotDone.
func IsNotDone(err error) bool {
	var marked *notDoneError
	return errors.As(err, &marked)
}

// Refusal is an error that is a result: the outside answered, and will not answer
// otherwise (a declined card, E5). With ok true it is recorded as the effect's
// result and replays as a RecordedError. The business errors of package workers
// implement it.
type Refusal interface {
	error
	// Refusal gives code and error of the refusal; ok false means that it is
	// none.
	Refusal() (code int, failure journal.Failure, ok bool)
}

// RecordedError is an error that is the recorded result of an effect; every run
// gets the same.
type RecordedError struct {
	Name    string
	Code    int // 400…599
	Failure journal.Failure
}

// Error names the effect and gives the recorded message.
func (e *RecordedError) Error() string {
	return fmt.Sprintf("effect %q ended with error %d (%s): %s", e.Name, e.Code, e.Failure.Class, e.Failure.Message)
}

// DuplicateError says that one run asked for the same effect twice (E2).
type DuplicateError struct{ First, Second string }

// Error says what to do.
func (e *DuplicateError) Error() string {
	if e.First == e.Second {
		return fmt.Sprintf("effect %q was called twice in one run: give each call its own effects.WithKey, or effects.Once if they are one", e.First)
	}
	return fmt.Sprintf("effects %q and %q have the same explicit key in one run: an explicit key belongs to one effect, put the name into it", e.First, e.Second)
}

// NondeterminismError says that a replay asked for a recorded key with another
// name or with other arguments (E2).
type NondeterminismError struct{ Key, Recorded, Asked string }

// Error shows both.
func (e *NondeterminismError) Error() string {
	return fmt.Sprintf("the handler is not deterministic: key %q was recorded for %q and is asked for %q (name[key]{digest of the arguments}): "+
		"take what differs out of the handler's input, or use another key", e.Key, e.Recorded, e.Asked)
}

// UnknownError says that a call ended without a known outcome (E5): the outside
// may or may not have been reached. Of an Idempotent effect the try fails, and
// the next one calls again with the same key.
type UnknownError struct {
	Name string
	Key  string
	Err  error
}

// Error names the effect.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("effect %q: the outcome is unknown, it is tried again with the same key: %v", e.Name, e.Err)
}

// Unwrap gives the error of fn.
func (e *UnknownError) Unwrap() error { return e.Err }

// ParkedError says that a Guarded effect began and its outcome is not known: it
// never runs again by itself, the request is parked for a person (E3, E4).
type ParkedError struct {
	Name string
	Key  string
	Err  error // of fn, or nil after a crash
}

// Error says who decides now.
func (e *ParkedError) Error() string {
	why := "the run that called it died or lost its lease"
	if e.Err != nil {
		why = e.Err.Error()
	}
	return fmt.Sprintf("effect %q (key %s) may have been applied: %s; look outside, then retry its dead letter if it was not, or resolve it with the result", e.Name, e.Key, why)
}

// Unwrap gives the error of fn, if there is one.
func (e *ParkedError) Unwrap() error { return e.Err }

// StoreError says that the journal could not be used: nothing is concluded, the
// request is handed back and run again (C10).
type StoreError struct {
	Name string
	Op   string
	Err  error
}

// Error names operation and effect.
func (e *StoreError) Error() string {
	return fmt.Sprintf("effect %q: %s: %v", e.Name, e.Op, e.Err)
}

// Unwrap gives the store's error: store.ErrStale, store.ErrJobClosed, …
func (e *StoreError) Unwrap() error { return e.Err }
