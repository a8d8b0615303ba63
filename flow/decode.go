package flow

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/flow/internal/expr"
)

// definition is what a source says, with defaults filled in.
type definition struct {
	name, version string
	identity      Identity
	input, output *node
	expire        time.Duration
	activities    []*activityDef
	transitions   []*transitionDef
}

type activityDef struct {
	name            string
	at              position
	kind            Type
	topic           string
	input           *node
	retry           Retry
	factor, jitter  string // exact
	timeout, within time.Duration
	class           string
}

type transitionDef struct {
	from, to  string
	at        *node // the target
	path      string
	onError   bool
	when      *node
	condition string // the expression of when
}

var (
	namePattern    = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	versionPattern = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	topicPattern   = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*$`)
)

// scopeWords are names that expressions give to other things than activities.
var scopeWords = []string{"job", "item", "index", "signal"}

// decoder turns nodes into a definition and goes on after every fault.
type decoder struct{ *collector }

func (d decoder) flow(root *node) *definition {
	if root.kind != kindMap {
		d.at(root, "", "a flow is a mapping, this is %s", root.kind)
		return nil
	}
	d.knownKeys(root, "", "flow")
	def := &definition{identity: Caller, output: root.get("output")}
	def.name = d.name(d.required(root, "", "flow"), "flow")
	if n := d.required(root, "", "version"); n != nil {
		def.version = d.text(n, "version", versionPattern, "letters, digits, '.', '_' and '-'", MaxVersion)
	}
	if n := root.get("identity"); n != nil {
		def.identity = Identity(d.choice(n, "identity", string(Caller), string(Strict)))
	}
	if def.input = root.get("input"); def.input != nil && def.input.kind != kindMap && def.input.kind != kindBool {
		d.at(def.input, "input", "a JSON Schema is a mapping or a boolean, this is %s", def.input.kind)
		def.input = nil
	}
	if n := root.get("expire"); n != nil {
		def.expire = d.duration(n, "expire", MinExpire, MaxExpire)
	}
	d.activities(def, d.required(root, "", "activities"))
	d.transitions(def, root.get("transitions"))
	return def
}

// required returns a member, or reports that it is missing.
func (d decoder) required(n *node, path, key string) *node {
	v := n.get(key)
	if v == nil {
		d.add(n.position, join(path, key), "", "the key %s is missing", key)
	}
	return v
}

func (d decoder) is(n *node, path string, want kind) bool {
	if n.kind != want {
		d.at(n, path, "must be %s, this is %s", want, n.kind)
		return false
	}
	return true
}

func (d decoder) text(n *node, path string, pattern *regexp.Regexp, form string, limit int) string {
	switch {
	case n.kind == kindNumber:
		d.at(n, path, "must be a string, this is a number; quote it")
	case !d.is(n, path, kindString):
	case len(n.text) > limit:
		d.at(n, path, "has %d characters, at most %d are allowed", len(n.text), limit)
	case !pattern.MatchString(n.text):
		d.at(n, path, "must be %s", form)
	default:
		return n.text
	}
	return ""
}

func (d decoder) name(n *node, path string) string {
	if n == nil {
		return ""
	}
	return d.text(n, path, namePattern, "a name: [a-z][a-z0-9_]*", MaxName)
}

func (d decoder) choice(n *node, path string, choices ...string) string {
	if !slices.Contains(choices, n.text) || n.kind != kindString {
		d.at(n, path, "must be one of %s", strings.Join(choices, ", "))
		return choices[0]
	}
	return n.text
}

func (d decoder) duration(n *node, path string, least, most time.Duration) time.Duration {
	if n.kind == kindString && strings.Contains(n.text, "${") {
		d.at(n, path, "this build does not support an expression as a duration yet")
		return least
	}
	if n.kind != kindString {
		d.at(n, path, "must be a duration such as 500ms, 30s or 72h, this is %s", n.kind)
		return least
	}
	v, err := time.ParseDuration(n.text)
	switch {
	case err != nil:
		d.at(n, path, "must be a duration such as 500ms, 30s or 72h")
	case v < least || v > most:
		d.at(n, path, "must be from %s to %s", shortDuration(least), shortDuration(most))
	default:
		return v
	}
	return least
}

// shortDuration is String without zero minutes and seconds.
func shortDuration(v time.Duration) string {
	text := v.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// number reads a number within limits; the text is exact, the value is for use.
func (d decoder) number(n *node, path string, least, most float64) (string, float64) {
	if !d.is(n, path, kindNumber) {
		return "0", least
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || v < least || v > most {
		d.at(n, path, "must be from %v to %v", least, most)
	}
	return n.text, v
}

func (d decoder) activities(def *definition, n *node) {
	if n == nil || !d.is(n, "activities", kindMap) {
		return
	}
	if len(n.members) == 0 {
		d.at(n, "activities", "a flow has at least a trigger")
	}
	if len(n.members) > MaxActivities {
		d.at(n, "activities", "%d activities, at most %d are allowed", len(n.members), MaxActivities)
		return
	}
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		path := join("activities", m.key)
		switch {
		case seen[m.key]: // reported as a key that comes twice
			continue
		case !namePattern.MatchString(m.key):
			d.add(m.position, path, m.key, "must be a name: [a-z][a-z0-9_]*")
		case len(m.key) > MaxName:
			d.add(m.position, path, m.key, "a name of %d characters, at most %d are allowed", len(m.key), MaxName)
		case expr.Reserved(m.key) || expr.TypeName(m.key) || slices.Contains(scopeWords, m.key):
			d.add(m.position, path, m.key, "this word means something else in expressions; choose another name")
		}
		seen[m.key] = true
		def.activities = append(def.activities, d.activity(m, path))
	}
}

func (d decoder) activity(m member, path string) *activityDef {
	a := &activityDef{name: m.key, at: m.position, retry: DefaultRetry, factor: "2", jitter: "0.2"}
	n := m.value
	if !d.is(n, path, kindMap) {
		return a
	}
	kind := d.required(n, path, "type")
	if kind == nil || !d.is(kind, path+".type", kindString) {
		d.knownKeys(n, path, "activity", "worker")
		return a
	}
	a.kind = Type(kind.text)
	switch a.kind {
	case TypeTrigger:
		d.knownKeys(n, path, "activity", "trigger")
		for _, key := range []string{"input", "retry", "timeout", "within"} {
			if v := n.get(key); v != nil {
				d.add(v.position, join(path, key), key, "a trigger does not take this key: its output is the job's input")
			}
		}
	case TypeWorker:
		d.knownKeys(n, path, "activity", "worker")
		d.worker(a, n, path)
	case TypeAwait, TypeHook, TypeSignal, TypeCycle, TypeInterrupt:
		d.at(kind, path+".type", "this build does not support activities of this type yet")
	default:
		d.at(kind, path+".type", "unknown type; an activity is a trigger or a worker")
		a.kind = ""
	}
	return a
}

func (d decoder) worker(a *activityDef, n *node, path string) {
	if topic := d.required(n, path, "topic"); topic != nil {
		a.topic = d.text(topic, path+".topic", topicPattern, "a topic: parts of [a-z0-9_-] joined by dots", MaxTopic)
	}
	a.input = n.get("input")
	if v := n.get("timeout"); v != nil {
		a.timeout = d.duration(v, path+".timeout", MinDuration, MaxDuration)
	}
	if v := n.get("within"); v != nil {
		a.within = d.duration(v, path+".within", MinDuration, MaxDuration)
	}
	if v := n.get("class"); v != nil {
		a.class = d.choice(v, path+".class", "pure", "tx", "idempotent", "guarded")
	}
	if v := n.get("retry"); v != nil {
		d.retry(a, v, path+".retry")
	}
}

func (d decoder) retry(a *activityDef, n *node, path string) {
	if !d.is(n, path, kindMap) {
		return
	}
	d.knownKeys(n, path, "retry")
	if v := n.get("attempts"); v != nil && d.is(v, path+".attempts", kindNumber) {
		attempts, err := strconv.Atoi(v.text)
		if err != nil || attempts < 1 || attempts > MaxAttempts {
			d.at(v, path+".attempts", "must be an integer from 1 to %d", MaxAttempts)
		}
		a.retry.Attempts = attempts
	}
	if v := n.get("backoff"); v != nil {
		a.retry.Backoff = d.duration(v, path+".backoff", MinDuration, MaxDuration)
	}
	a.retry.Max = max(a.retry.Max, a.retry.Backoff)
	if v := n.get("max"); v != nil {
		a.retry.Max = d.duration(v, path+".max", a.retry.Backoff, MaxDuration)
	}
	if v := n.get("factor"); v != nil {
		a.factor, a.retry.Factor = d.number(v, path+".factor", 1, MaxFactor)
	}
	if v := n.get("jitter"); v != nil {
		a.jitter, a.retry.Jitter = d.number(v, path+".jitter", 0, 1)
	}
}

func (d decoder) transitions(def *definition, n *node) {
	if n == nil || !d.is(n, "transitions", kindMap) {
		return
	}
	known := make(map[string]bool, len(def.activities))
	for _, a := range def.activities {
		known[a.name] = true
	}
	for _, m := range n.members {
		path := join("transitions", m.key)
		if !known[m.key] {
			d.add(m.position, path, m.key, "there is no activity of this name")
		}
		if m.value.kind != kindList {
			d.at(m.value, path, "must be a list of transitions, this is %s", m.value.kind)
			continue
		}
		if len(m.value.items) > MaxOut {
			d.at(m.value, path, "%d transitions leave one activity, at most %d are allowed", len(m.value.items), MaxOut)
			continue
		}
		for i, item := range m.value.items {
			t := d.transition(m.key, item, path+"["+strconv.Itoa(i)+"]")
			if t == nil {
				continue
			}
			if !known[t.to] {
				d.at(t.at, t.path, "there is no activity of this name")
			}
			if known[t.to] && known[t.from] {
				def.transitions = append(def.transitions, t)
			}
		}
	}
}

func (d decoder) transition(from string, n *node, path string) *transitionDef {
	t := &transitionDef{from: from, at: n, path: path}
	switch n.kind {
	case kindString:
		t.to = n.text
		return t
	case kindMap:
	default:
		d.at(n, path, "a transition is a name or a mapping, this is %s", n.kind)
		return nil
	}
	d.knownKeys(n, path, "transition")
	if on := n.get("on"); on != nil {
		t.onError = true
		d.choice(on, path+".on", "error")
	}
	if when := n.get("when"); when != nil && d.is(when, path+".when", kindString) {
		t.when = when
	}
	to := d.required(n, path, "to")
	if to == nil || !d.is(to, path+".to", kindString) {
		return nil
	}
	t.to, t.at, t.path = to.text, to, path+".to"
	return t
}
