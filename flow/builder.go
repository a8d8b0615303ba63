package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// Builder makes a flow in Go, in the same steps as from a file. Nothing is checked before
// Build, which reports all faults at once; the same flow has the same canonical form and
// digest.
type Builder struct {
	head        []entry
	activities  []entry
	transitions []entry        // by source, in order of first mention
	sources     map[string]int // index of a source in transitions
	wrong       []Fault
	builtin     bool
}

// entry is a member of a JSON object.
type entry struct {
	key  string
	json []byte
}

func textEntry(key, value string) entry {
	return entry{key, canonical.AppendString(nil, value)}
}

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

// Identity sets where the keys of jobs come from; default Caller.
func (b *Builder) Identity(i Identity) *Builder { return b.set(textEntry("identity", string(i))) }

// Input sets the JSON Schema of the job's input, as JSON text.
func (b *Builder) Input(schemaJSON string) *Builder {
	if _, err := canonical.Payload([]byte(schemaJSON)); err != nil {
		b.fault("input", err)
		return b
	}
	return b.set(entry{"input", []byte(schemaJSON)})
}

// Output maps the job's result: any value that encoding/json can write. Its strings may
// contain expressions.
func (b *Builder) Output(v any) *Builder {
	e, err := valueEntry("output", v)
	if err != nil {
		b.fault("output", err)
		return b
	}
	return b.set(e)
}

// Expire sets how long a closed job is kept: MinExpire to MaxExpire, or Never for good.
// Without it the space's default holds.
func (b *Builder) Expire(d time.Duration) *Builder { return b.set(textEntry("expire", expireText(d))) }

// Schedule starts jobs by the clock. Zone, CatchUp and Input may be empty; Input
// is JSON.
func (b *Builder) Schedule(s Schedule) *Builder {
	o := openObject(nil)
	o.text("cron", s.Cron)
	if s.Zone != "" {
		o.text("zone", s.Zone)
	}
	if s.CatchUp != "" {
		o.text("catch_up", string(s.CatchUp))
	}
	if _, err := canonical.Payload(s.Input); err == nil {
		o.key("input")
		o.dst = append(o.dst, s.Input...)
	} else if s.Input != nil {
		b.fault("schedule.input", err)
	}
	return b.set(entry{"schedule", o.close()})
}

// Trigger adds the root.
func (b *Builder) Trigger(name string) *Builder {
	return b.activity(name, textEntry("type", "trigger"))
}

// Worker adds a worker that sends its requests to a topic. Its options: Input,
// Output, Each, Parallel, CollectErrors, Class, Retry, Timeout, Within, Join.
func (b *Builder) Worker(name, topic string, options ...ActivityOption) *Builder {
	return b.add(name, options, textEntry("type", "worker"), textEntry("topic", topic))
}

// Await adds an await that starts a job of a flow, given by name or expression. Its
// options: Input, Output, ChildVersion, ChildID, Detached, Retry, Within, Join.
func (b *Builder) Await(name, flow string, options ...ActivityOption) *Builder {
	return b.add(name, options, textEntry("type", "await"), textEntry("flow", flow))
}

// Hook adds a hook; without Sleep or WaitFor it passes through. Its options: Sleep,
// WaitFor, Expires, Repeat, Within, Input (pass-through), Output, Join.
func (b *Builder) Hook(name string, options ...ActivityOption) *Builder {
	return b.add(name, options, textEntry("type", "hook"))
}

// Signal adds an activity that sends a signal. Its options: Payload, Code, ToAll,
// Output, Join.
func (b *Builder) Signal(name, topic, key string, options ...ActivityOption) *Builder {
	return b.add(name, options, textEntry("type", "signal"), textEntry("topic", topic), textEntry("key", key))
}

// Cycle adds an activity that sends its pivot, a pass-through hook, into its next pass.
// Its options: Input, Max, Join.
func (b *Builder) Cycle(name, to string, options ...ActivityOption) *Builder {
	return b.add(name, options, textEntry("type", "cycle"), textEntry("to", to))
}

// Interrupt adds an activity that ends its own job or, with Target, another. Its options:
// Target, Code, Reason, Complete, Descend, Output (with Target), Join.
func (b *Builder) Interrupt(name string, options ...ActivityOption) *Builder {
	return b.add(name, options, textEntry("type", "interrupt"))
}

func (b *Builder) add(name string, options []ActivityOption, entries ...entry) *Builder {
	for _, option := range options {
		more, err := option.activityKeys()
		if err != nil {
			b.fault("activities."+name, err)
			continue
		}
		entries = append(entries, more...)
	}
	return b.activity(name, entries...)
}

func (b *Builder) activity(name string, entries ...entry) *Builder {
	b.activities = append(b.activities, entry{name, object(entries)})
	return b
}

// Transition makes one activity follow another. The transitions of one source keep their
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
	c := &collector{faults: slices.Clone(b.wrong), builtin: b.builtin}
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
