package flow

import (
	"fmt"
	"strings"
)

// Built-in flows: one worker activity on the topic that is their version. They
// are deployed when they are first needed, and never by a user.
const (
	// BuiltinPrefix begins their names. Parse and Build refuse it.
	BuiltinPrefix = "quipu_"
	// CallName is the flow of a direct call with a record (E14), see Call.
	CallName = BuiltinPrefix + "call"
	// UndoName is the flow of the job that runs the compensations of a function
	// which somebody else ended (3.5), see Undo.
	UndoName = BuiltinPrefix + "undo"
)

// Call returns the flow that runs one handler: the job's input is the handler's,
// and its output the job's (E14). topic is its version. The error is Faults.
func Call(topic string) (*Flow, error) { return oneWorker(CallName, topic, DefaultRetry) }

// Undo is Call for compensations. What they are to take back stands outside until
// they have run: they have as many attempts as there can be.
func Undo(topic string) (*Flow, error) {
	retry := DefaultRetry
	retry.Attempts = MaxAttempts
	return oneWorker(UndoName, topic, retry)
}

// IsBuiltin says that a name belongs to a built-in flow, or may in another build.
func IsBuiltin(name string) bool { return strings.HasPrefix(name, BuiltinPrefix) }

// Builtin returns the built-in flow of the name and version. The error is Faults,
// or says that there is none.
func Builtin(name, version string) (*Flow, error) {
	switch name {
	case CallName:
		return Call(version)
	case UndoName:
		return Undo(version)
	}
	return nil, fmt.Errorf("%s is no built-in flow: those are %s and %s", name, CallName, UndoName)
}

func oneWorker(name, topic string, retry Retry) (*Flow, error) {
	b := New(name).Version(topic).Output("${ call.output }").
		Trigger("start").
		Worker("call", topic, Input("${ start.output }"), retry).
		Transition("start", "call")
	b.builtin = true
	return b.Build()
}
