package flow

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// activityDef is an activity of a source, with defaults filled in.
type activityDef struct {
	name            string
	at              position
	kind            Type
	topic           string // of a hook: the topic of its signal
	input, output   *node
	retry           Retry
	factor, jitter  string // exact
	timeout, within time.Duration
	class           string
	classAt         *node
	join            Join
	joinAt          *node
	values          []value // keys of its type that may contain expressions
	each            *node
	eachText        string // the expression of each
	parallel        int
	collect         bool
	awaited         bool
	maxAge          time.Duration
	repeat          bool
	all             bool
	to              *node
	max             int
	throw, descend  bool
}

// value is a key that may contain expressions.
type value struct {
	key  string
	node *node
}

// has says that the activity has this key among its values.
func (a *activityDef) has(key string) bool {
	return slices.ContainsFunc(a.values, func(v value) bool { return v.key == key })
}

// closer says that the activity interrupts its own job.
func (a *activityDef) closer() bool { return a.kind == TypeInterrupt && !a.has("target") }

func (a *activityDef) passThrough() bool {
	return a.kind == TypeHook && a.topic == "" && !a.has("sleep")
}

func (d decoder) activity(m member, path string) *activityDef {
	a := &activityDef{name: m.key, at: m.position, retry: DefaultRetry, factor: "2", jitter: "0.2"}
	n := m.value
	if !d.is(n, path, kindMap) {
		return a
	}
	kind := d.required(n, path, "type")
	switch {
	case kind == nil || !d.is(kind, path+".type", kindString):
		return a
	case !slices.Contains(types, kind.text):
		d.at(kind, path+".type", "unknown type; an activity is one of %s", strings.Join(types, ", "))
		return a
	}
	a.kind = Type(kind.text)
	d.knownKeys(n, path, kind.text)
	if a.kind == TypeTrigger {
		return a
	}
	d.common(a, n, path)
	switch a.kind {
	case TypeWorker:
		d.worker(a, n, path)
	case TypeAwait:
		d.await(a, n, path)
	case TypeHook:
		d.hook(a, n, path)
	case TypeSignal:
		d.signal(a, n, path)
	case TypeCycle:
		a.to = d.required(n, path, "to")
		a.max = d.integer(n, path, "max", DefaultPasses, MaxPasses)
	case TypeInterrupt:
		d.interrupt(a, n, path)
	}
	return a
}

// common reads the keys that all types share. Keys that mean nothing for the type have
// been reported.
func (d decoder) common(a *activityDef, n *node, path string) {
	if a.kind == TypeAwait {
		a.retry = DefaultAwaitRetry
	}
	a.input, a.output, a.joinAt = n.get("input"), n.get("output"), n.get("join")
	if v := n.get("retry"); v != nil {
		d.retry(a, v, path+".retry")
	}
	if v := n.get("timeout"); v != nil {
		a.timeout = d.duration(v, path+".timeout", MinDuration, MaxDuration, "")
	}
	if v := n.get("within"); v != nil {
		a.within = d.duration(v, path+".within", MinDuration, MaxDuration, "")
	}
	if a.joinAt != nil {
		a.join = Join(d.choice(a.joinAt, path+".join", string(JoinAll), string(JoinAny)))
	}
}

func (d decoder) retry(a *activityDef, n *node, path string) {
	if !d.is(n, path, kindMap) {
		return
	}
	d.knownKeys(n, path, "retry")
	a.retry.Attempts = d.integer(n, path, "attempts", a.retry.Attempts, MaxAttempts)
	if v := n.get("backoff"); v != nil {
		a.retry.Backoff = d.duration(v, path+".backoff", MinDuration, MaxDuration, "")
	}
	a.retry.Max = max(a.retry.Max, a.retry.Backoff)
	if v := n.get("max"); v != nil {
		a.retry.Max = d.duration(v, path+".max", a.retry.Backoff, MaxDuration, "")
	}
	if v := n.get("factor"); v != nil {
		a.factor, a.retry.Factor = d.number(v, path+".factor", 1, MaxFactor)
	}
	if v := n.get("jitter"); v != nil {
		a.jitter, a.retry.Jitter = d.number(v, path+".jitter", 0, 1)
	}
}

func (d decoder) topic(n *node, path string) string {
	if n == nil {
		return ""
	}
	return d.text(n, path, topicPattern, "a topic: parts of [a-z0-9_-] joined by dots", MaxTopic)
}

// needs reports keys that mean nothing without another key.
func (d decoder) needs(n *node, path, needed string, keys ...string) {
	for i := range n.members {
		if m := &n.members[i]; slices.Contains(keys, m.key) {
			d.add(m.position, join(path, m.key), m.key, "this key means nothing without %s", needed)
		}
	}
}

func (d decoder) worker(a *activityDef, n *node, path string) {
	a.topic = d.topic(d.required(n, path, "topic"), path+".topic")
	if v := n.get("class"); v != nil {
		a.class, a.classAt = d.choice(v, path+".class", "pure", "tx", "idempotent", "guarded"), v
	}
	each := n.get("each")
	if each == nil {
		d.needs(n, path, "each", "parallel", "each_errors")
		return
	}
	if d.is(each, path+".each", kindString) {
		a.each = each
	}
	a.parallel = d.integer(n, path, "parallel", DefaultParallel, MaxElements)
	if v := n.get("each_errors"); v != nil {
		a.collect = d.choice(v, path+".each_errors", "fail", "collect") == "collect"
	}
	if a.input == nil && a.each != nil {
		a.input = textNode(n.position, "${ item }")
	}
}

func textNode(at position, text string) *node {
	return &node{position: at, kind: kindString, text: text, size: 1}
}

func (d decoder) await(a *activityDef, n *node, path string) {
	d.required(n, path, "flow")
	d.values(a, n, path, "flow", "version", "id")
	a.awaited = d.boolean(n, path, "await", true)
	if v := n.get("id"); v != nil && a.awaited && a.retry.Attempts > 1 {
		d.add(v.position, path+".id", "id", "every attempt would start its child with this key, and the first child keeps it: leave out id, or retry")
	}
}

func (d decoder) hook(a *activityDef, n *node, path string) {
	d.values(a, n, path, "sleep")
	if a.has("sleep") {
		if v := a.values[0].node; !strings.Contains(v.text, "${") {
			length, _ := sleepOf(v.text)
			a.values[0].node = textNode(v.position, length.String())
		}
	}
	signal := n.get("signal")
	if signal == nil {
		d.needs(n, path, "signal", "key", "expires", "repeat")
		if n.get("sleep") == nil {
			d.needs(n, path, "sleep or signal", "within")
			return
		}
	}
	for i := range n.members {
		if m := &n.members[i]; m.key == "input" {
			d.add(m.position, path+".input", m.key, "a hook that waits does not take this key: its output is the signal's payload; output maps it")
		}
	}
	if signal == nil {
		return
	}
	a.topic = d.topic(signal, path+".signal")
	d.required(n, path, "key")
	d.values(a, n, path, "key")
	if v := n.get("expires"); v != nil {
		a.maxAge = d.duration(v, path+".expires", MinDuration, MaxDuration, "")
	}
	a.repeat = d.boolean(n, path, "repeat", false)
}

func (d decoder) signal(a *activityDef, n *node, path string) {
	a.topic = d.topic(d.required(n, path, "topic"), path+".topic")
	if v := n.get("mode"); v != nil {
		a.all = d.choice(v, path+".mode", "one", "all") == "all"
	}
	d.required(n, path, "key")
	d.values(a, n, path, "key")
	payload := n.get("payload")
	if payload == nil {
		payload = &node{position: n.position, kind: kindNull, text: "null", size: 1}
	}
	a.values = append(a.values, value{"payload", payload})
	d.code(a, n, path, 200)
}

func (d decoder) interrupt(a *activityDef, n *node, path string) {
	d.values(a, n, path, "target", "reason")
	if !a.has("reason") {
		a.values = append(a.values, value{"reason", textNode(n.position, "interrupted")})
	}
	d.code(a, n, path, 410)
	a.throw = d.boolean(n, path, "throw", true)
	a.descend = d.boolean(n, path, "descend", false)
	if n.get("target") == nil {
		d.needs(n, path, "target: nothing follows the end of the own job", "output")
	}
}

// values reads keys whose value is text with expressions. A literal text is checked here,
// any other after evaluation.
func (d decoder) values(a *activityDef, n *node, path string, keys ...string) {
	for _, key := range keys {
		v := n.get(key)
		if v == nil || !d.is(v, join(path, key), kindString) {
			continue
		}
		if text, literal := literalOf(v.text); literal {
			if err := forms[key](text); err != nil {
				d.at(v, join(path, key), "%s", err)
			}
		}
		a.values = append(a.values, value{key, v})
	}
}

// literalOf returns the text of a string without expressions.
func literalOf(s string) (text string, literal bool) {
	pieces, open := split(s)
	switch {
	case open >= 0 || len(pieces) > 1 || len(pieces) == 1 && pieces[0].expression:
		return "", false
	case len(pieces) == 0:
		return "", true
	}
	return pieces[0].text, true
}

// code reads an integer or an expression.
func (d decoder) code(a *activityDef, n *node, path string, fallback int) {
	v := n.get("code")
	switch {
	case v == nil:
		v = &node{position: n.position, kind: kindNumber, text: strconv.Itoa(fallback), size: 1}
	case v.kind == kindNumber:
		if _, err := codeOf(a.kind, []byte(v.text)); err != nil {
			d.at(v, path+".code", "%s", err)
		}
	default:
		if _, literal := literalOf(v.text); v.kind != kindString || literal {
			d.at(v, path+".code", "must be an integer or an expression in ${ }")
			return
		}
	}
	a.values = append(a.values, value{"code", v})
}
