package collation

import (
	"errors"
	"fmt"
)

// ErrAction comes with ErrRejected: an operator's action does not fit its dead letter, and
// nothing was asked of the database.
var ErrAction = errors.New("the action does not fit the dead letter")

var errAction = errors.Join(ErrAction, ErrRejected)

// refusal is an error that an operator reads: its text alone, without that of its kind.
type refusal struct {
	why  string
	kind error
}

// Error returns the text.
func (r *refusal) Error() string { return r.why }

// Unwrap returns the kind.
func (r *refusal) Unwrap() error { return r.kind }

// misfit returns an ErrAction.
func misfit(format string, a ...any) error { return &refusal{fmt.Sprintf(format, a...), errAction} }

// staleFor returns an ErrStale.
func staleFor(why string) error { return &refusal{why, ErrStale} }

// ended says how a dead letter ended that is not open any more. The state LetterResolved does not
// tell an effect that was done from a result.
func (l *Letter) ended() error {
	switch l.State {
	case LetterAnswered:
		return staleFor("it has ended: the answer of its message came after all")
	case LetterResolved:
		return staleFor("it is decided already")
	}
	return staleFor("it is decided already: " + l.State)
}
