package flow

import (
	"fmt"
	"time"
)

// Each evaluates the list of a worker with `each` and returns its canonical elements. The
// error is an *EvalError, also if the value is no list, or has more than MaxElements
// elements or MaxMappedBytes bytes. The caller must not change the elements.
func (a *Activity) Each(s Scope) ([][]byte, error) {
	list, err := a.each.AppendJSON(nil, source{scope: s})
	if err == nil {
		var elements [][]byte
		if elements, err = elementsOf(list); err == nil {
			return elements, nil
		}
	}
	return nil, &EvalError{Activity: a.Name, Place: "each", Expression: a.eachSource, Err: err}
}

// value evaluates a key of the activity's type; nil if it is missing.
func (a *Activity) value(s Scope, key string) ([]byte, error) {
	t := a.values[key]
	if t == nil {
		return nil, nil
	}
	value, err := t.Eval(source{scope: s})
	if err != nil {
		return nil, evalError(a.Name, key, err)
	}
	return value, nil
}

// shown are the keys whose refused text an error shows. The other texts may be somebody's data.
var shown = map[string]bool{"sleep": true, "flow": true, "version": true}

// text evaluates a key whose value is text and checks its form; "" if it is missing.
func (a *Activity) text(s Scope, key string) (string, error) {
	value, err := a.value(s, key)
	if value == nil || err != nil {
		return "", err
	}
	text, err := textOf(value)
	if err == nil {
		if err = forms[key](text); err != nil && shown[key] {
			err = fmt.Errorf("%w, not %q", err, clip(text))
		}
	}
	return text, a.refused(key, err)
}

// refused is the error for a value that does not fit its key.
func (a *Activity) refused(key string, err error) error {
	if err == nil {
		return nil
	}
	return &EvalError{Activity: a.Name, Place: key, Expression: a.values[key].Source(), Err: err}
}

// code evaluates the code of a signal or an interrupt.
func (a *Activity) code(s Scope) (int, error) {
	value, err := a.value(s, "code")
	if err != nil {
		return 0, err
	}
	code, err := codeOf(a.Type, value)
	if err != nil {
		err = fmt.Errorf("%w, not %s", err, clip(string(value)))
	}
	return code, a.refused("code", err)
}

// Sleep evaluates how long a hook sleeps, 0 to MaxSleep. The error is an *EvalError.
func (a *Activity) Sleep(s Scope) (time.Duration, error) {
	text, err := a.text(s, "sleep")
	if err != nil {
		return 0, err
	}
	return sleepOf(text)
}

// Key evaluates the key of the signal that a hook waits for or that a signal
// activity sends: 1 to MaxSignalKey bytes. The error is an *EvalError.
func (a *Activity) Key(s Scope) (string, error) { return a.text(s, "key") }

// Child is the order of an await.
type Child struct {
	Flow    string
	Version string // "": the active one
	ID      string // the child's key; "": it is derived
}

// Child evaluates which child an await starts; the child's input is Input. The error is
// an *EvalError; with it comes what was evaluated before.
func (a *Activity) Child(s Scope) (Child, error) {
	var c Child
	var err error
	if c.Flow, err = a.text(s, "flow"); err != nil {
		return c, err
	}
	if c.Version, err = a.text(s, "version"); err != nil {
		return c, err
	}
	c.ID, err = a.text(s, "id")
	return c, err
}

// Signal is the order of a signal activity.
type Signal struct {
	Key     string
	Payload []byte // canonical; null by default
	Code    int    // 200, 202, or 400 to 599
}

// Signal evaluates the signal that a signal activity sends to its Topic. The error is an
// *EvalError.
func (a *Activity) Signal(s Scope) (Signal, error) {
	key, err := a.text(s, "key")
	if err != nil {
		return Signal{}, err
	}
	payload, err := a.value(s, "payload")
	if err != nil {
		return Signal{}, err
	}
	code, err := a.code(s)
	return Signal{Key: key, Payload: payload, Code: code}, err
}

// Interrupt is the order of an interrupt activity.
type Interrupt struct {
	Target string // the key of a job; "": its own
	Code   int    // 400 to 599
	Reason string // up to MaxReason bytes
}

// Interrupt evaluates which job an interrupt activity ends, and how. The error is an
// *EvalError.
func (a *Activity) Interrupt(s Scope) (Interrupt, error) {
	target, err := a.text(s, "target")
	if err != nil {
		return Interrupt{}, err
	}
	reason, err := a.text(s, "reason")
	if err != nil {
		return Interrupt{}, err
	}
	code, err := a.code(s)
	return Interrupt{Target: target, Code: code, Reason: reason}, err
}

// Schedule returns the flow's schedule, nil for none. The caller must not change it.
func (f *Flow) Schedule() *Schedule { return f.schedule }
