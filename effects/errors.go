package effects

import (
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/journal"
)

// ErrUsage is wrapped by errors about a call that can never work: a bad name, key, class or
// argument, the same effect, wait or compensation twice in a run, class Tx in Do, too many calls.
var ErrUsage = errors.New("the effect cannot be called like this")

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

// IsNotDone reports whether err was marked by NotDone, or is a *FailedError.
func IsNotDone(err error) bool {
	chain := usercode.Chain(err)
	_, marked := usercode.As[*notDoneError](chain)
	_, failed := usercode.As[*FailedError](chain)
	return marked || failed
}

// FailedError is the recorded error of an effect that ended with NotDone in a durable
// function. The run that called the effect gets it, and so does every later run if the
// function went on after it. If the function ended with it, the next attempt calls the
// effect again.
type FailedError struct {
	Name    string
	Failure journal.Failure
	// Cause is the error of fn, only in the run that called it: do not decide on it.
	Cause error
}

// Error names the effect and gives the recorded message.
func (e *FailedError) Error() string {
	return fmt.Sprintf("effect %q was not done: %s", e.Name, e.Failure.Message)
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

// NondeterminismError says that a replay asked for a recorded key with another
// name or with other arguments (E2), or that a durable function takes another path
// than the recorded one (E15).
type NondeterminismError struct {
	Key string // explicit key, of handlers that are no durable functions
	// Recorded is the recorded call and Asked the one that was made, "" for none.
	Recorded, Asked string
	// Position is the first place at which a durable function differs. RecordedAt is the
	// position of Recorded, "" if it is the same.
	Position, RecordedAt string
}

// Error shows both calls, and says what to do.
func (e *NondeterminismError) Error() string {
	if e.Position != "" {
		return fmt.Sprintf("the function takes another path than the recorded one: %s; "+
			"deploy the code that fits what is recorded (a change under running jobs goes behind workers.Version), then `quipu dead retry`", e.difference())
	}
	return fmt.Sprintf("the handler is not deterministic: key %q was recorded for %q and is asked for %q (name[key]{digest of the arguments}): "+
		"take what differs out of the handler's input, or use another key", e.Key, e.Recorded, e.Asked)
}

func (e *NondeterminismError) difference() string {
	switch {
	case e.Asked == "":
		return fmt.Sprintf("it ends without %s, which is recorded at position %s", e.Recorded, e.Position)
	case e.Recorded == "":
		return fmt.Sprintf("at position %s it asks for %s, and nothing is recorded there although it went on", e.Position, e.Asked)
	case e.Recorded == e.Asked:
		return fmt.Sprintf("at position %s it asks for %s, which is recorded at position %q", e.Position, e.Asked, e.RecordedAt)
	case e.RecordedAt != "":
		return fmt.Sprintf("at position %s it asks for %s, and the record goes on with %s at position %s", e.Position, e.Asked, e.Recorded, e.RecordedAt)
	}
	return fmt.Sprintf("at position %s it asks for %s, and %s is recorded there", e.Position, e.Asked, e.Recorded)
}

// UnknownError says that a call ended without a known outcome (E5): the outside may or
// may not have been reached. With an Idempotent effect the attempt fails, and the next
// one calls again with the same key.
type UnknownError struct {
	Name string
	Key  string
	Err  error
}

// Error names the effect.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("effect %q: the outcome is unknown; another attempt has the same key: %v", e.Name, e.Err)
}

// Unwrap gives the error of fn.
func (e *UnknownError) Unwrap() error { return e.Err }

// ParkedError says that a Guarded effect began and its outcome is not known. It does not
// run again by itself; the request is parked for a person (E3, E4).
type ParkedError struct {
	Name     string
	Key      string
	Err      error // of fn, or nil after a crash
	Verifier error // why its verifier could not tell; nil without one
}

// Error says who decides now, and how.
func (e *ParkedError) Error() string {
	why := e.Err
	if why == nil {
		why = errors.New("the run that called it died or lost its lease")
	}
	asked := ""
	if e.Verifier != nil {
		asked = fmt.Sprintf("; its verifier was asked: %v", e.Verifier)
	}
	return fmt.Sprintf("effect %q (key %s) may have been applied: %v%s; look outside, then `quipu dead done` with its result if it was done, "+
		"`quipu dead retry` if it was not and is to run again, or `quipu dead fail`", e.Name, e.Key, why, asked)
}

// Unwrap gives the error of fn, if there is one.
func (e *ParkedError) Unwrap() error { return e.Err }
