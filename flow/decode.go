package flow

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/flow/internal/expr"
	"github.com/quipu-journal/quipu/internal/schedule"
)

// definition is the content of a source, with defaults filled in.
type definition struct {
	name, version string
	identity      Identity
	input, output *node
	expire        time.Duration
	schedule      *scheduleDef
	activities    []*activityDef
	transitions   []*transitionDef
	partial       bool // not all transitions were read
}

type scheduleDef struct {
	cron, zone string
	catchUp    CatchUp
	input      *node
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

// scopeWords are names in expressions that do not mean activities.
var scopeWords = []string{"job", "item", "index", "signal"}

// decoder turns nodes into a definition; it goes on after a fault.
type decoder struct{ *collector }

func (d decoder) flow(root *node) *definition {
	if root.kind != kindMap {
		d.at(root, "", "a flow is a mapping, this is %s", root.kind)
		return nil
	}
	d.knownKeys(root, "", "flow")
	def := &definition{identity: Caller, output: root.get("output")}
	if n := d.required(root, "", "flow"); n != nil {
		def.name = d.name(n, "flow")
		if IsBuiltin(def.name) && !d.builtin {
			d.at(n, "flow", "names that begin with %s are those of built-in flows; choose another one", BuiltinPrefix)
		}
	}
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
		if def.expire = Never; n.kind != kindString || n.text != never {
			def.expire = d.duration(n, "expire", MinExpire, MaxExpire, ", or never")
		}
	}
	d.schedule(def, root.get("schedule"))
	if !d.activities(def, d.required(root, "", "activities")) {
		return nil // without them, nothing that names one can be checked
	}
	d.transitions(def, root.get("transitions"))
	return def
}

func (d decoder) schedule(def *definition, n *node) {
	if n == nil || !d.is(n, "schedule", kindMap) {
		return
	}
	d.knownKeys(n, "schedule", "schedule")
	s := &scheduleDef{zone: "UTC", catchUp: CatchUpOne, input: n.get("input")}
	if s.input == nil {
		s.input = &node{position: n.position, kind: kindMap}
	}
	if c := n.get("catch_up"); c != nil {
		s.catchUp = CatchUp(d.choice(c, "schedule.catch_up", string(CatchUpNone), string(CatchUpOne), string(CatchUpAll)))
	}
	if zone := n.get("zone"); zone != nil && d.is(zone, "schedule.zone", kindString) {
		if _, err := schedule.Parse("* * * * *", zone.text); err != nil {
			d.at(zone, "schedule.zone", "%s", err)
		} else {
			s.zone = zone.text
		}
	}
	if cron := d.required(n, "schedule", "cron"); cron != nil && d.is(cron, "schedule.cron", kindString) {
		s.cron = cron.text
		if _, err := schedule.Parse(s.cron, s.zone); err != nil {
			d.at(cron, "schedule.cron", "%s", err)
		}
	}
	if def.identity == Strict {
		d.add(n.position, "schedule", "", "identity strict has one job for each input, and a schedule gives each of its jobs the same")
	}
	def.schedule = s
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

func (d decoder) duration(n *node, path string, least, most time.Duration, or string) time.Duration {
	if n.kind == kindString && strings.Contains(n.text, "${") {
		d.at(n, path, "must be a duration such as 500ms, 30s or 72h%s; of all durations only sleep takes expressions", or)
		return least
	}
	if n.kind != kindString {
		d.at(n, path, "must be a duration such as 500ms, 30s or 72h%s; this is %s", or, n.kind)
		return least
	}
	v, err := time.ParseDuration(n.text)
	switch {
	case err != nil:
		d.at(n, path, "must be a duration such as 500ms, 30s or 72h%s", or)
	case v < least || v > most:
		d.at(n, path, "must be from %s to %s%s", shortDuration(least), shortDuration(most), or)
	default:
		return v
	}
	return least
}

// shortDuration is d.String() without zero minutes and seconds.
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

// boolean reads true or false; fallback if the key is missing.
func (d decoder) boolean(n *node, path, key string, fallback bool) bool {
	v := n.get(key)
	if v == nil || !d.is(v, join(path, key), kindBool) {
		return fallback
	}
	return v.text == "true"
}

// integer reads an integer from 1 to most; fallback if the key is missing.
func (d decoder) integer(n *node, path, key string, fallback, most int) int {
	v := n.get(key)
	if v == nil || !d.is(v, join(path, key), kindNumber) {
		return fallback
	}
	i, err := strconv.Atoi(v.text)
	if err != nil || i < 1 || i > most {
		d.at(v, join(path, key), "must be an integer from 1 to %d", most)
	}
	return i
}

// number reads a number within limits, as exact text and as a rounded value.
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

// activities reads the activities; false if there is no mapping of them, or one that is too large.
func (d decoder) activities(def *definition, n *node) bool {
	if n == nil || !d.is(n, "activities", kindMap) {
		return false
	}
	if len(n.members) == 0 {
		d.at(n, "activities", "a flow has at least a trigger")
	}
	if len(n.members) > MaxActivities {
		d.at(n, "activities", "%d activities, at most %d are allowed", len(n.members), MaxActivities)
		return false
	}
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		path := join("activities", m.key)
		switch {
		case seen[m.key]: // already reported as a key that comes twice
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
	return true
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
			def.partial = true
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
