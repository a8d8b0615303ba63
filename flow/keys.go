package flow

import (
	"slices"
	"strings"
)

// keyDoc is one key of a definition, as in the reference.
type keyDoc struct {
	// Name is the key.
	Name string
	// Takes is the kind of value.
	Takes string
	// Default is what holds if the key is missing.
	Default string
	// Meaning says what the key does, with its limits.
	Meaning string
	// Refused says why this build refuses the key; empty if it does not.
	Refused string
}

// section is a mapping in a definition and the keys that it takes.
type section struct {
	// Name is flow, activity, transition, retry, schedule, or a type of activity.
	Name string
	// Keys are the section's keys, in the order of the reference.
	Keys []keyDoc
}

// sections are the tables that definitions are checked against and that docs/flow.md shows. The
// keys of "activity" are shared by all types, except as pointless says.
var sections = []section{
	{"flow", []keyDoc{
		{Name: "flow", Takes: "name", Default: "required", Meaning: "The flow's name: `[a-z][a-z0-9_]*`, up to 64 characters. It cannot begin with `quipu_`, because those are built-in flows."},
		{Name: "version", Takes: "string", Default: "required", Meaning: "A label: letters, digits, `.`, `_`, `-`, up to 128. What was deployed under a name and version never changes."},
		{Name: "identity", Takes: "`caller` or `strict`", Default: "`caller`", Meaning: "Where a job's key comes from. `caller`: whoever starts the job gives it. `strict`: it is the digest of the flow's name and the canonical input, and another key is refused."},
		{Name: "input", Takes: "JSON Schema 2020-12", Default: "anything", Meaning: "Checked when a job starts. References stay within the schema; `format` is an annotation."},
		{Name: "output", Takes: "mapped value", Default: "`null`", Meaning: "The result of a job. It sees every activity in its last pass. An activity that never ran has output null, and `.skipped` is true."},
		{Name: "expire", Takes: "duration or `never`", Default: "what the space says, 720h", Meaning: "How long a closed job is kept: 1s to 87600h. After that time the job is no longer shown, and its journal is dropped together with others of its age. It is kept while a job that runs its compensations is open."},
		{Name: "schedule", Takes: "mapping", Default: "none", Meaning: "Starts jobs by the clock. Not with `identity: strict`."},
		{Name: "activities", Takes: "mapping of activities by name", Default: "required", Meaning: "1 to 20000 activities; exactly one is of type trigger. Names: `[a-z][a-z0-9_]*`, up to 64 characters, no reserved word of expressions."},
		{Name: "transitions", Takes: "mapping of lists by activity", Default: "none", Meaning: "What follows an activity: up to 1000 names or transitions. At most 99 transitions lead to one activity. At least one leads to every activity but the trigger."},
	}},
	{"schedule", []keyDoc{
		{Name: "cron", Takes: "string", Default: "required", Meaning: "Five fields: minute, hour, day of the month, month, day of the week."},
		{Name: "zone", Takes: "IANA time zone", Default: "`UTC`", Meaning: "The time zone of the fields."},
		{Name: "catch_up", Takes: "`none`, `one` or `all`", Default: "`one`", Meaning: "What happens with times that passed while no process looked. `none`: nothing. `one`: one job, for the latest. `all`: a job for each."},
		{Name: "input", Takes: "mapped value", Default: "`{}`", Meaning: "The input of the jobs. Its expressions cannot refer to anything, and it must fit the flow's `input`."},
	}},
	{"activity", []keyDoc{
		{Name: "type", Takes: "`trigger`, `worker`, `await`, `hook`, `signal`, `cycle` or `interrupt`", Default: "required", Meaning: "What the activity is."},
		{Name: "input", Takes: "mapped value", Default: "`{}`; of a worker with `each` the element", Meaning: "Worker: what the handler gets. Await: the input of the child. Pass-through hook: its output. Cycle: the output of the pivot in the next pass. Up to 1 MiB."},
		{Name: "output", Takes: "mapped value", Default: "the response", Meaning: "Replaces the response when the activity ends with success. Up to 1 MiB."},
		{Name: "retry", Takes: "mapping", Default: "see Retries", Meaning: "The retry policy of a worker or an await."},
		{Name: "timeout", Takes: "duration", Default: "none", Meaning: "Bounds one attempt of a worker, counted from when its handler begins: 1ms to 8760h. The time in which no worker takes the request does not count; `within` bounds that."},
		{Name: "within", Takes: "duration", Default: "none", Meaning: "Bounds a worker, an await or a waiting hook as a whole, from dispatch to its end, all attempts included: 1ms to 8760h. After that it ends with error 408."},
		{Name: "join", Takes: "`all` or `any`", Default: "`all`", Meaning: "For an activity to which several transitions lead. `all`: it runs when all are decided and at least one is taken. `any`: it runs when the first is taken."},
	}},
	{"trigger", nil},
	{"worker", []keyDoc{
		{Name: "topic", Takes: "topic", Default: "required", Meaning: "Where requests go: `[a-z0-9_-]+` parts joined by dots, up to 128 characters."},
		{Name: "each", Takes: "expression", Default: "one request", Meaning: "A list, up to 10000 elements and 1 MiB: one request for each element. The output is the list of their outputs, in the order of the elements."},
		{Name: "parallel", Takes: "integer", Default: "100", Meaning: "How many elements are under way at once: 1 to 10000. Needs `each`."},
		{Name: "each_errors", Takes: "`fail` or `collect`", Default: "`fail`", Meaning: "What an element's error does. `fail`: the activity fails when all elements have ended. `collect`: the output is a list of `{code, output}` and `{code, error}`. Needs `each`."},
		{Name: "class", Takes: "`pure`, `tx`, `idempotent` or `guarded`", Default: "none", Meaning: "A note for readers: the class that the author expects of the handler's effects. It changes nothing, and a deploy warns of it. The handler sets the class, with `workers.Class` or at `effects.Do`."},
	}},
	{"await", []keyDoc{
		{Name: "flow", Takes: "name, or text with expressions", Default: "required", Meaning: "The flow of the child."},
		{Name: "version", Takes: "string with expressions", Default: "the active one", Meaning: "The version of the child."},
		{Name: "space", Refused: "this build awaits flows of its own space"},
		{Name: "id", Takes: "string with expressions", Default: "derived from the parent's key", Meaning: "The key of the child, 1 to 512 bytes without control characters. A key that belongs to another parent is error 409. Not allowed with more than one attempt, because the first child keeps the key."},
		{Name: "await", Takes: "boolean", Default: "`true`", Meaning: "`true`: the activity ends when the child ends. `false`: the activity ends when the child has started, with the output `{id}`."},
	}},
	{"hook", []keyDoc{
		{Name: "sleep", Takes: "duration, or text with expressions", Default: "no sleep", Meaning: "How long the hook sleeps: 0s to 87600h."},
		{Name: "signal", Takes: "topic", Default: "no signal", Meaning: "The topic of the signal that the hook waits for."},
		{Name: "key", Takes: "string with expressions", Default: "required with `signal`", Meaning: "The key of the signal, 1 to 512 bytes without control characters."},
		{Name: "expires", Takes: "duration", Default: "as long as signals are kept", Meaning: "How old a signal may be that came before the hook waited: 1ms to 8760h. Needs `signal`."},
		{Name: "repeat", Takes: "boolean", Default: "`false`", Meaning: "`true`: each signal makes a pass. A signal with code 202 keeps the hook open; any other ends it. Needs `signal`."},
	}},
	{"signal", []keyDoc{
		{Name: "mode", Takes: "`one` or `all`", Default: "`one`", Meaning: "Who gets the signal. `one`: the oldest open wait; if there is none, the signal is kept for the next. `all`: every open wait, up to 10000; it is not kept."},
		{Name: "topic", Takes: "topic", Default: "required", Meaning: "The topic of the signal."},
		{Name: "key", Takes: "string with expressions", Default: "required", Meaning: "The key of the signal, 1 to 512 bytes without control characters."},
		{Name: "payload", Takes: "mapped value", Default: "`null`", Meaning: "What the hook outputs. Up to 1 MiB."},
		{Name: "code", Takes: "integer, or an expression", Default: "200", Meaning: "200, 202 (a repeating hook stays open), or 400 to 599 (the hook ends with this error)."},
	}},
	{"cycle", []keyDoc{
		{Name: "to", Takes: "name", Default: "required", Meaning: "The pivot: a pass-through hook that lies on every path to the cycle."},
		{Name: "max", Takes: "integer", Default: "10000", Meaning: "How often the pivot may be entered again: 1 to 99999998. One more time fails the job."},
	}},
	{"interrupt", []keyDoc{
		{Name: "target", Takes: "string with expressions", Default: "the own job", Meaning: "The key of the job that is interrupted, 1 to 512 bytes without control characters."},
		{Name: "code", Takes: "integer, or an expression", Default: "410", Meaning: "The code with which the job ends: 400 to 599."},
		{Name: "reason", Takes: "string with expressions", Default: "`interrupted`", Meaning: "The message with which the job ends, up to 4096 bytes."},
		{Name: "throw", Takes: "boolean", Default: "`true`", Meaning: "`true`: the job ends as interrupted. `false`: it ends as completed."},
		{Name: "descend", Takes: "boolean", Default: "`false`", Meaning: "`true`: the children that the job awaits are interrupted, too."},
	}},
	{"retry", []keyDoc{
		{Name: "attempts", Takes: "integer", Default: "3; of an await 1", Meaning: "Attempts in all: 1 to 1000."},
		{Name: "backoff", Takes: "duration", Default: "1s", Meaning: "The wait after the first failed attempt: 1ms to 8760h."},
		{Name: "factor", Takes: "number", Default: "2", Meaning: "Multiplies the wait from attempt to attempt: 1 to 100."},
		{Name: "max", Takes: "duration", Default: "1m, or `backoff` if longer", Meaning: "Bounds the wait: `backoff` to 8760h."},
		{Name: "jitter", Takes: "number", Default: "0.2", Meaning: "How much of the wait is random: 0 to 1."},
	}},
	{"transition", []keyDoc{
		{Name: "to", Takes: "name", Default: "required", Meaning: "The activity that follows."},
		{Name: "on", Takes: "`error`", Default: "success", Meaning: "The transition takes an error response instead of a success."},
		{Name: "when", Takes: "expression", Default: "true", Meaning: "The transition is taken only if this is true. It sees the activity that the transition leaves and that activity's ancestors."},
	}},
}

// types are the types of activities, in the order of the reference.
var types = []string{"trigger", "worker", "await", "hook", "signal", "cycle", "interrupt"}

const (
	noAttempts = "it has no attempts; within bounds how long it may take"
	atOnce     = "it waits for nothing and ends at once"
	noRetries  = "there is nothing to try again"
	rootOnly   = "its output is the job's input"
)

// pointless are the shared keys that mean nothing for a type, and why.
var pointless = map[string]map[string]string{
	"trigger":   {"input": rootOnly, "output": rootOnly, "retry": rootOnly, "timeout": rootOnly, "within": rootOnly, "join": "no transition leads to it"},
	"await":     {"timeout": noAttempts},
	"hook":      {"retry": noRetries, "timeout": noAttempts},
	"signal":    {"input": "what it sends is its payload", "retry": noRetries, "timeout": atOnce, "within": atOnce},
	"cycle":     {"output": "its input becomes the output of its pivot", "retry": noRetries, "timeout": atOnce, "within": atOnce},
	"interrupt": {"input": "it sends nothing but code and reason", "retry": noRetries, "timeout": atOnce, "within": atOnce},
}

// taken are the allowed keys of each section. For a type of activity these are the shared
// keys and its own.
var taken = func() map[string][]keyDoc {
	all := map[string][]keyDoc{}
	for _, s := range sections {
		all[s.Name] = s.Keys
	}
	for _, t := range types {
		common := slices.DeleteFunc(slices.Clone(all["activity"]), func(k keyDoc) bool { return pointless[t][k.Name] != "" })
		all[t] = append(common, all[t]...)
	}
	return all
}()

// knownKeys checks the keys of a mapping against the table of its section.
func (c *collector) knownKeys(n *node, path, section string) {
	keys := taken[section]
	for _, m := range n.members {
		i := slices.IndexFunc(keys, func(k keyDoc) bool { return k.Name == m.key })
		if i >= 0 && keys[i].Refused == "" || c.full() {
			continue
		}
		place := join(path, m.key)
		switch {
		case i >= 0:
			c.add(m.position, place, m.key, "%s", keys[i].Refused)
		case pointless[section][m.key] != "":
			c.add(m.position, place, m.key, "%s does not take this key: %s", withArticle(section), pointless[section][m.key])
		default:
			c.add(m.position, place, m.key, "unknown key; %s takes %s", withArticle(section), listOf(keys))
		}
	}
}

func withArticle(word string) string {
	if strings.ContainsAny(word[:1], "aeiou") {
		return "an " + word
	}
	return "a " + word
}

func listOf(keys []keyDoc) string {
	var names []string
	for _, k := range keys {
		if k.Refused == "" {
			names = append(names, k.Name)
		}
	}
	return strings.Join(names, ", ")
}
