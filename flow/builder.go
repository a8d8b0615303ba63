package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/quipu-journal/quipu/canonical"
)

// Builder puts a flow together in Go. It takes the same way as a file does:
// nothing is checked before Build, which reports all faults at once, and the
// same flow has the same canonical form and digest.
type Builder struct {
	head        []entry
	activities  []entry
	transitions []entry        // by source, in the order of the first mention
	sources     map[string]int // where a source is among them
	wrong       []Fault
}

// entry is a member of JSON that is being written.
type entry struct {
	key  string
	json []byte
}

// ActivityOption sets a key of a worker: Input, Timeout, Within, Class, Retry.
type ActivityOption interface{ activityKey() (entry, error) }

// TransitionOption sets a key of a transition: When, OnError.
type TransitionOption interface{ transitionKey() entry }

type (
	activityOption   func() (entry, error)
	transitionOption entry
)

func (o activityOption) activityKey() (entry, error) { return o() }

func (o transitionOption) transitionKey() entry { return entry(o) }

func textEntry(key, value string) entry {
	return entry{key, canonical.AppendString(nil, value)}
}

// Input maps the input of a worker: any value that encoding/json can write,
// whose strings may hold expressions.
func Input(v any) ActivityOption {
	return activityOption(func() (entry, error) { return valueEntry("input", v) })
}

// Timeout bounds one try of a worker (E9), MinDuration to MaxDuration.
func Timeout(d time.Duration) ActivityOption {
	return activityOption(func() (entry, error) { return textEntry("timeout", d.String()), nil })
}

// Within bounds the time from dispatch to ending response (E9), MinDuration to
// MaxDuration.
func Within(d time.Duration) ActivityOption {
	return activityOption(func() (entry, error) { return textEntry("within", d.String()), nil })
}

// Class sets the effect class of a worker's body (E3): pure, tx, idempotent or
// guarded.
func Class(class string) ActivityOption {
	return activityOption(func() (entry, error) { return textEntry("class", class), nil })
}

func (r Retry) activityKey() (entry, error) {
	o := openObject(nil)
	if r.Attempts != 0 {
		o.key("attempts")
		o.dst = strconv.AppendInt(o.dst, int64(r.Attempts), 10)
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
	return entry{"retry", o.close()}, nil
}

// float writes the shortest decimal that is this float.
func (o *objectWriter) float(name string, v float64) {
	o.key(name)
	if math.IsNaN(v) || math.IsInf(v, 0) { // no number in JSON; the decoder says so
		o.dst = canonical.AppendString(o.dst, strconv.FormatFloat(v, 'g', -1, 64))
		return
	}
	o.dst = strconv.AppendFloat(o.dst, v, 'g', -1, 64)
}

// When is the condition of a transition, an expression.
func When(expression string) TransitionOption {
	return transitionOption(textEntry("when", expression))
}

// OnError lets a transition take errors instead of successes (E11).
func OnError() TransitionOption { return transitionOption(textEntry("on", "error")) }

func valueEntry(key string, v any) (entry, error) {
	text, err := json.Marshal(v)
	return entry{key, text}, err
}

// New starts a flow.
func New(name string) *Builder {
	return (&Builder{sources: map[string]int{}}).set(textEntry("flow", name))
}

func (b *Builder) set(e entry) *Builder {
	b.head = append(b.head, e)
	return b
}

func (b *Builder) fault(path string, err error) {
	b.wrong = append(b.wrong, Fault{Path: path, Message: err.Error()})
}

// Version sets the version; it is required.
func (b *Builder) Version(v string) *Builder { return b.set(textEntry("version", v)) }

// Identity sets where the keys of jobs come from; the default is Caller.
func (b *Builder) Identity(i Identity) *Builder { return b.set(textEntry("identity", string(i))) }

// Input sets the JSON Schema of the job's input, as JSON text.
func (b *Builder) Input(schemaJSON string) *Builder {
	if _, err := canonical.Payload([]byte(schemaJSON)); err != nil {
		b.fault("input", err)
		return b
	}
	return b.set(entry{"input", []byte(schemaJSON)})
}

// Output maps the job's result: any value that encoding/json can write, whose
// strings may hold expressions.
func (b *Builder) Output(v any) *Builder {
	e, err := valueEntry("output", v)
	if err != nil {
		b.fault("output", err)
		return b
	}
	return b.set(e)
}

// Expire sets how long a closed job is kept, MinExpire to MaxExpire.
func (b *Builder) Expire(d time.Duration) *Builder { return b.set(textEntry("expire", d.String())) }

// Trigger adds the root.
func (b *Builder) Trigger(name string) *Builder {
	return b.activity(name, textEntry("type", "trigger"))
}

// Worker adds a worker that sends its requests to a topic.
func (b *Builder) Worker(name, topic string, options ...ActivityOption) *Builder {
	entries := []entry{textEntry("type", "worker"), textEntry("topic", topic)}
	for _, option := range options {
		e, err := option.activityKey()
		if err != nil {
			b.fault("activities."+name, err)
			continue
		}
		entries = append(entries, e)
	}
	return b.activity(name, entries...)
}

func (b *Builder) activity(name string, entries ...entry) *Builder {
	b.activities = append(b.activities, entry{name, object(entries)})
	return b
}

// Transition lets one activity follow another. Those of one source keep their
// order.
func (b *Builder) Transition(from, to string, options ...TransitionOption) *Builder {
	entries := []entry{textEntry("to", to)}
	for _, option := range options {
		entries = append(entries, option.transitionKey())
	}
	item := object(entries)
	if i, ok := b.sources[from]; ok {
		t := &b.transitions[i]
		t.json = append(append(t.json, ','), item...)
		return b
	}
	b.sources[from] = len(b.transitions)
	b.transitions = append(b.transitions, entry{from, item})
	return b
}

// Build validates and compiles. The error is Faults.
func (b *Builder) Build() (*Flow, error) {
	entries := append(slices.Clone(b.head), entry{"activities", object(b.activities)})
	if len(b.transitions) > 0 {
		lists := make([]entry, len(b.transitions))
		for i, t := range b.transitions {
			lists[i] = entry{t.key, fmt.Appendf(nil, "[%s]", t.json)}
		}
		entries = append(entries, entry{"transitions", object(lists)})
	}
	src := object(entries)
	c := &collector{faults: slices.Clone(b.wrong)}
	if len(src) > MaxDefinitionBytes {
		c.add(position{}, "", "", "a flow has at most %d bytes, this has %d", MaxDefinitionBytes, len(src))
		return nil, c.err()
	}
	return build(c, readJSON(src, c))
}

func object(entries []entry) []byte {
	o := openObject(nil)
	for _, e := range entries {
		o.key(e.key)
		o.dst = append(o.dst, bytes.TrimSpace(e.json)...)
	}
	return o.close()
}
