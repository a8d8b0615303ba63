package flow

import (
	"fmt"
	"strings"
)

// Built-in flows have one worker activity, whose topic is their version. They are
// deployed when they are first needed, never by a user.
const (
	// BuiltinPrefix begins the names of built-in flows. Parse and Build refuse it.
	BuiltinPrefix = "quipu_"
	// CallName is the flow of a direct call with a record (E14), see Call.
	CallName = BuiltinPrefix + "call"
	// UndoName is the flow of the job that runs the compensations of a function that
	// something else ended (3.5), see Undo.
	UndoName = BuiltinPrefix + "undo"
)

// Call returns the flow that runs one handler: the job's input is the handler's input,
// and its output the job's output (E14). Its version is topic. The error is Faults.
func Call(topic string) (*Flow, error) { return oneWorker(CallName, topic, DefaultRetry) }

// Undo is Call for compensations, with the most attempts that are possible, because
// something stays to be taken back until they have run.
func Undo(topic string) (*Flow, error) {
	retry := DefaultRetry
	retry.Attempts = MaxAttempts
	return oneWorker(UndoName, topic, retry)
}

// IsBuiltin says that a name is reserved for built-in flows, of this build or another.
func IsBuiltin(name string) bool { return strings.HasPrefix(name, BuiltinPrefix) }

// Builtin returns the built-in flow of that name and version. The error is Faults, or
// says that there is no such flow.
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
