package flow

import "time"

// Each evaluates the list of a worker with `each`: its elements, canonical. The
// error is an *EvalError, also for a value that is no list, or one of more than
// MaxElements elements.
func (a *Activity) Each(s Scope) ([][]byte, error) { return nil, nil }

// ElementInput is Input for one element of the list, from 0.
func (a *Activity) ElementInput(s Scope, item []byte, index int) ([]byte, error) { return a.Input(s) }

// Sleep evaluates how long a hook sleeps, 0 to MaxSleep.
func (a *Activity) Sleep(s Scope) (time.Duration, error) { return 0, nil }

// Key evaluates the key of the signal that a hook waits for or that a signal
// activity sends: 1 to MaxSignalKey bytes.
func (a *Activity) Key(s Scope) (string, error) { return "", nil }

// Child is what an await starts.
type Child struct {
	Flow    string
	Version string // "" the active one
	ID      string // the child's key; "" one is derived
}

// Child evaluates what an await starts; its input is Input.
func (a *Activity) Child(s Scope) (Child, error) { return Child{}, nil }

// Signal is what a signal activity sends.
type Signal struct {
	Key     string
	Payload []byte // canonical; null by default
	Code    int    // 200, 202, or 400 to 599
}

// Signal evaluates what a signal activity sends to its Topic.
func (a *Activity) Signal(s Scope) (Signal, error) { return Signal{}, nil }

// Interrupt is what an interrupt activity does.
type Interrupt struct {
	Target string // the key of a job; "" its own
	Code   int    // 400 to 599
	Reason string
}

// Interrupt evaluates what an interrupt activity does.
func (a *Activity) Interrupt(s Scope) (Interrupt, error) { return Interrupt{}, nil }

// HasOutput says that the activity maps its output.
func (a *Activity) HasOutput() bool { return false }

// MapOutput evaluates the activity's `output`, which sees the activity itself as
// it responded, its ancestors and, in a hook, `signal`: an object with id, code
// and payload, canonical, or nil for null.
func (a *Activity) MapOutput(s Scope, signal []byte) ([]byte, error) { return nil, nil }

// Schedule returns when the flow's jobs start by the clock, nil for never.
func (f *Flow) Schedule() *Schedule { return nil }
