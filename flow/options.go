package flow

import (
	"math"
	"strconv"
	"time"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// ActivityOption sets keys of an activity. A [Retry] and a [Join] are options too. An
// option that the activity does not take is a fault of Build.
type ActivityOption interface{ activityKeys() ([]entry, error) }

// TransitionOption sets a key of a transition: When, OnError.
type TransitionOption interface{ transitionKey() entry }

type (
	activityOption   func() ([]entry, error)
	transitionOption entry
)

func (o activityOption) activityKeys() ([]entry, error) { return o() }

func (o transitionOption) transitionKey() entry { return entry(o) }

// set is an option for entries that are already encoded.
func set(entries ...entry) ActivityOption {
	return activityOption(func() ([]entry, error) { return entries, nil })
}

func setText(key, value string) ActivityOption { return set(textEntry(key, value)) }

func setValue(key string, v any) ActivityOption {
	return activityOption(func() ([]entry, error) {
		e, err := valueEntry(key, v)
		return []entry{e}, err
	})
}

// Input maps the input of an activity: any value that encoding/json can write. Its
// strings may contain expressions.
func Input(v any) ActivityOption { return setValue("input", v) }

// Output maps the output of an activity: any value that encoding/json can write. Its
// strings may contain expressions.
func Output(v any) ActivityOption { return setValue("output", v) }

// Timeout bounds one attempt of a worker (E9), MinDuration to MaxDuration.
func Timeout(d time.Duration) ActivityOption { return setText("timeout", d.String()) }

// Within bounds the time from dispatch to the ending response (E9), MinDuration to
// MaxDuration.
func Within(d time.Duration) ActivityOption { return setText("within", d.String()) }

// Class notes the effect class of a worker's body (E3): pure, tx, idempotent or guarded.
// It changes nothing; the handler decides, with workers.Class or at effects.Do.
func Class(class string) ActivityOption { return setText("class", class) }

// Each makes a worker send one request for each element of a list: an expression with at
// most MaxElements elements. Input may mention item and index.
func Each(list string) ActivityOption { return setText("each", list) }

// Parallel bounds the elements that are under way at once, 1 to MaxElements.
func Parallel(n int) ActivityOption { return setValue("parallel", n) }

// CollectErrors puts the errors of elements into the output instead of failing the
// activity.
func CollectErrors() ActivityOption { return setText("each_errors", "collect") }

// ChildVersion sets the version of an await's child; its text may contain expressions.
// Without it the child runs the active version.
func ChildVersion(version string) ActivityOption { return setText("version", version) }

// ChildID sets the key of an await's child; its text may contain expressions. Without it
// the key is derived from the parent's.
func ChildID(id string) ActivityOption { return setText("id", id) }

// Detached makes an await end when its child starts.
func Detached() ActivityOption { return setValue("await", false) }

// Sleep sets how long a hook sleeps, 0 to MaxSleep: a duration such as 72h, or text with
// expressions.
func Sleep(duration string) ActivityOption { return setText("sleep", duration) }

// WaitFor makes a hook wait for a signal with this topic and key; the key may contain
// expressions.
func WaitFor(topic, key string) ActivityOption {
	return set(textEntry("signal", topic), textEntry("key", key))
}

// Expires bounds the age of a signal that came before the hook waited, MinDuration to
// MaxDuration.
func Expires(d time.Duration) ActivityOption { return setText("expires", d.String()) }

// Repeat makes every signal a pass of the hook, until one ends it (C6).
func Repeat() ActivityOption { return setValue("repeat", true) }

// Payload maps the payload of a signal: any value that encoding/json can write. Its
// strings may contain expressions.
func Payload(v any) ActivityOption { return setValue("payload", v) }

// Code sets the code of a signal (200, 202, 400 to 599) or of an interrupt (400 to 599):
// an integer, or a string with an expression.
func Code(code any) ActivityOption { return setValue("code", code) }

// ToAll sends a signal to all open waits instead of the oldest.
func ToAll() ActivityOption { return setText("mode", "all") }

// Max bounds the passes that a cycle makes, 1 to MaxPasses.
func Max(passes int) ActivityOption { return setValue("max", passes) }

// Target sets the key of the job to interrupt; its text may contain expressions.
func Target(key string) ActivityOption { return setText("target", key) }

// Reason sets the message of an interrupt; its text may contain expressions.
func Reason(text string) ActivityOption { return setText("reason", text) }

// Complete makes an interrupt end the job as completed.
func Complete() ActivityOption { return setValue("throw", false) }

// Descend makes an interrupt also end the children that the job awaits.
func Descend() ActivityOption { return setValue("descend", true) }

// activityKeys makes a Join an option of the activity at which transitions meet.
func (j Join) activityKeys() ([]entry, error) { return []entry{textEntry("join", string(j))}, nil }

// activityKeys makes a Retry an option of a worker or an await.
func (r Retry) activityKeys() ([]entry, error) {
	o := openObject(nil)
	if r.Attempts != 0 {
		o.integer("attempts", r.Attempts)
	}
	if r.Backoff != 0 {
		o.text("backoff", r.Backoff.String())
	}
	if r.Factor != 0 {
		o.float("factor", r.Factor)
	}
	if r.Max != 0 {
		o.text("max", r.Max.String())
	}
	if r.Jitter != 0 {
		o.float("jitter", max(r.Jitter, 0))
	}
	return []entry{{"retry", o.close()}}, nil
}

// float writes the shortest decimal that parses to v.
func (o *objectWriter) float(name string, v float64) {
	o.key(name)
	if math.IsNaN(v) || math.IsInf(v, 0) { // JSON has no such number; the decoder reports it
		o.dst = canonical.AppendString(o.dst, strconv.FormatFloat(v, 'g', -1, 64))
		return
	}
	o.dst = strconv.AppendFloat(o.dst, v, 'g', -1, 64)
}

// When is the condition of a transition, an expression.
func When(expression string) TransitionOption {
	return transitionOption(textEntry("when", expression))
}

// OnError makes a transition take errors instead of successes (E11).
func OnError() TransitionOption { return transitionOption(textEntry("on", "error")) }
