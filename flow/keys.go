package flow

import "slices"

// Key is one key of a definition, as the reference lists it.
type Key struct {
	// Name is the key.
	Name string
	// Takes is what its value may be.
	Takes string
	// Default is what holds without the key.
	Default string
	// Meaning says what it does, with limits.
	Meaning string
	// Later keys are known but not supported by this build; using one is a fault.
	Later bool
}

// Section is a mapping in a definition and the keys that it takes.
type Section struct {
	// Name is flow, activity, transition, retry, or a type of activity.
	Name string
	// Keys are its keys, in the order of the reference.
	Keys []Key
}

// Sections returns the tables that definitions are checked against and that
// docs/flow.md shows. The keys of "activity" are those of every type; the
// caller must not change anything.
func Sections() []Section { return sections }

var sections = []Section{
	{"flow", []Key{
		{Name: "flow", Takes: "name", Default: "required", Meaning: "The flow's name: `[a-z][a-z0-9_]*`, up to 64 characters."},
		{Name: "version", Takes: "string", Default: "required", Meaning: "A label: letters, digits, `.`, `_`, `-`, up to 64. What was deployed under a name and version never changes."},
		{Name: "identity", Takes: "`caller` or `strict`", Default: "`caller`", Meaning: "Where a job's key comes from: `caller` gives it, or `strict`: the digest of flow and canonical input."},
		{Name: "input", Takes: "JSON Schema 2020-12", Default: "anything", Meaning: "Checked when a job starts. References stay within the schema; `format` is an annotation."},
		{Name: "output", Takes: "mapped value", Default: "`null`", Meaning: "The result of a job. It sees every activity; one that never ran has output null and `.skipped`."},
		{Name: "expire", Takes: "duration", Default: "kept for good", Meaning: "How long a closed job is kept: 1s to 87600h."},
		{Name: "schedule", Takes: "", Default: "", Meaning: "Starts jobs by the clock.", Later: true},
		{Name: "activities", Takes: "mapping of activities by name", Default: "required", Meaning: "1 to 20000 activities, one of them of type trigger. Names: `[a-z][a-z0-9_]*`, up to 64 characters, no word that means something in expressions."},
		{Name: "transitions", Takes: "mapping of lists by activity", Default: "none", Meaning: "What follows an activity: up to 1000 names or transitions. Every activity but the trigger is the target of exactly one transition in this build."},
	}},
	{"activity", []Key{
		{Name: "type", Takes: "`trigger` or `worker`", Default: "required", Meaning: "What the activity is. `await`, `hook`, `signal`, `cycle` and `interrupt` are not supported by this build."},
		{Name: "input", Takes: "mapped value", Default: "`{}`", Meaning: "What a worker gets, up to 1 MiB. Not for a trigger."},
		{Name: "output", Takes: "", Default: "", Meaning: "Maps the response.", Later: true},
		{Name: "retry", Takes: "mapping", Default: "see below", Meaning: "The retry policy of a worker. Not for a trigger."},
		{Name: "timeout", Takes: "duration", Default: "none", Meaning: "Bounds one try: 1ms to 8760h. Not for a trigger."},
		{Name: "within", Takes: "duration", Default: "none", Meaning: "Bounds the time from dispatch to ending response: 1ms to 8760h. Not for a trigger."},
		{Name: "join", Takes: "", Default: "", Meaning: "How several incoming transitions meet.", Later: true},
	}},
	{"trigger", nil},
	{"worker", []Key{
		{Name: "topic", Takes: "topic", Default: "required", Meaning: "Where requests go: `[a-z0-9_-]+` parts joined by dots, up to 128 characters."},
		{Name: "each", Takes: "", Default: "", Meaning: "One request for each element of a list.", Later: true},
		{Name: "parallel", Takes: "", Default: "", Meaning: "How many elements are under way at once.", Later: true},
		{Name: "each_errors", Takes: "", Default: "", Meaning: "What an element's error does.", Later: true},
		{Name: "class", Takes: "`pure`, `tx`, `idempotent` or `guarded`", Default: "from the handler's registration", Meaning: "The effect class of the handler's body."},
	}},
	{"await", later("flow", "version", "space", "id", "await")},
	{"hook", later("sleep", "signal", "key", "expires", "repeat")},
	{"signal", later("mode", "topic", "key", "payload", "code")},
	{"cycle", later("to", "max")},
	{"interrupt", later("target", "code", "reason", "throw", "descend")},
	{"retry", []Key{
		{Name: "attempts", Takes: "integer", Default: "3", Meaning: "Tries in all: 1 to 1000."},
		{Name: "backoff", Takes: "duration", Default: "1s", Meaning: "The wait after the first failed try: 1ms to 8760h."},
		{Name: "factor", Takes: "number", Default: "2", Meaning: "Multiplies the wait from try to try: 1 to 100."},
		{Name: "max", Takes: "duration", Default: "1m, or `backoff` if longer", Meaning: "Bounds the wait: `backoff` to 8760h."},
		{Name: "jitter", Takes: "number", Default: "0.2", Meaning: "The part of the wait that is random: 0 to 1."},
	}},
	{"transition", []Key{
		{Name: "to", Takes: "name", Default: "required", Meaning: "The activity that follows."},
		{Name: "on", Takes: "`error`", Default: "success", Meaning: "Takes an error response instead of a success."},
		{Name: "when", Takes: "expression", Default: "true", Meaning: "Whether the transition is taken. It sees the activity that it leaves and its ancestors."},
	}},
}

func later(names ...string) []Key {
	keys := make([]Key, len(names))
	for i, name := range names {
		keys[i] = Key{Name: name, Later: true}
	}
	return keys
}

func sectionOf(name string) (Section, bool) {
	i := slices.IndexFunc(sections, func(s Section) bool { return s.Name == name })
	if i < 0 {
		return Section{}, false
	}
	return sections[i], true
}

// knownKeys checks the keys of a mapping against tables.
func (c *collector) knownKeys(n *node, path string, names ...string) {
	var keys []Key
	for _, name := range names {
		s, _ := sectionOf(name)
		keys = append(keys, s.Keys...)
	}
	for _, m := range n.members {
		i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == m.key })
		switch {
		case i < 0:
			c.add(m.position, join(path, m.key), m.key, "unknown key; a %s takes %s", names[len(names)-1], listOf(keys))
		case keys[i].Later:
			c.add(m.position, join(path, m.key), m.key, "this build does not support this key yet")
		}
	}
}

func listOf(keys []Key) string {
	text := ""
	for _, k := range keys {
		if k.Later {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += k.Name
	}
	return text
}
