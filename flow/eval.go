package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/quipu-journal/quipu/flow/internal/expr"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// Input evaluates the activity's mapped input to canonical payload JSON; without an input
// clause it is {}. The caller must not change the result: a constant input is the same
// slice every time. The error is an *EvalError.
func (a *Activity) Input(s Scope) ([]byte, error) {
	return a.mapInput(source{scope: s})
}

// ElementInput is Input for one element of the list, index from 0. item is canonical.
func (a *Activity) ElementInput(s Scope, item []byte, index int) ([]byte, error) {
	return a.mapInput(source{scope: s, item: item, index: index})
}

func (a *Activity) mapInput(src source) ([]byte, error) {
	if a.input == nil {
		return []byte("{}"), nil
	}
	text, err := a.input.Eval(src)
	if err != nil {
		return nil, evalError(a.Name, "input", err)
	}
	return text, nil
}

// InputNeeds returns the sorted names of the activities that Leg1 needs: those that the
// input and all other keys except output mention. The caller must not change it.
func (a *Activity) InputNeeds() []string { return a.inputNeeds }

// HasOutput says that the activity maps its output.
func (a *Activity) HasOutput() bool { return a.output != nil }

// MapOutput evaluates the activity's `output`. It sees the activity's own response, its
// ancestors and, in a hook, `signal`: canonical JSON of an object with id, code and
// payload, nil for null. The error is an *EvalError.
func (a *Activity) MapOutput(s Scope, signal []byte) ([]byte, error) {
	text, err := a.output.Eval(source{scope: s, signal: signal})
	if err != nil {
		return nil, evalError(a.Name, "output", err)
	}
	return text, nil
}

// MapNeeds returns the sorted names of the activities that `output` mentions, perhaps its
// own. The caller must not change it.
func (a *Activity) MapNeeds() []string { return a.mapNeeds }

// Taken evaluates the transition's condition; without one it is true. It does not look at
// OnError: the caller compares that with the response (E11). The error is an *EvalError.
func (t *Transition) Taken(s Scope) (bool, error) {
	if t.when == nil {
		return true, nil
	}
	taken, err := t.when.Bool(source{scope: s})
	if err != nil {
		return false, &EvalError{Activity: t.From.Name, Place: "when of the transition to " + t.To.Name, Expression: t.whenSource, Err: err}
	}
	return taken, nil
}

// Needs returns the names of the activities that the condition mentions, sorted.
// The caller must not change it.
func (t *Transition) Needs() []string { return t.needs }

// Output evaluates the job's result to canonical payload JSON; without an output
// clause it is null. An activity that never ran has output null, no error, code
// 0 and skipped true. The error is an *EvalError.
func (f *Flow) Output(s Scope) ([]byte, error) {
	if f.output == nil {
		return []byte("null"), nil
	}
	text, err := f.output.Eval(source{scope: s, whole: true})
	if err != nil {
		e := evalError("", "output", err)
		e.Because = f.because(e.Expression, s)
		return nil, e
	}
	return text, nil
}

// OutputNeeds returns the names of the activities that the output mentions,
// sorted. The caller must not change it.
func (f *Flow) OutputNeeds() []string { return f.outputNeeds }

func evalError(activity, place string, err error) *EvalError {
	e := &EvalError{Activity: activity, Place: place, Err: err}
	if inner := (*expr.EvalError)(nil); errors.As(err, &inner) {
		e.Expression, e.Err = inner.Expression, inner.Err
	}
	return e
}

// StrictKey is the key of a job of a flow with identity strict (E16): the SHA-256, in
// hexadecimal, of the flow's name and the canonical input. The version is not part of it,
// so that the same input stays the same job when a new version is activated.
func (f *Flow) StrictKey(canonicalInput []byte) string {
	text := canonical.AppendString([]byte(`["quipu-strict-v1",`), f.name)
	text = append(append(append(text, ','), canonicalInput...), ']')
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
