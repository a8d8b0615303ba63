package flow

import (
	"strconv"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// appendJSON writes a definition without faults as JSON, with defaults spelled out. The
// canonical form of this JSON is the flow's.
func (d *definition) appendJSON(dst []byte) []byte {
	o := openObject(dst)
	o.text("flow", d.name)
	o.text("version", d.version)
	o.text("identity", string(d.identity))
	o.node("input", d.input)
	o.node("output", d.output)
	if d.expire != 0 {
		o.text("expire", expireText(d.expire))
	}
	if s := d.schedule; s != nil {
		o.key("schedule")
		inner := openObject(o.dst)
		inner.text("cron", s.cron)
		inner.text("zone", s.zone)
		inner.text("catch_up", string(s.catchUp))
		inner.node("input", s.input)
		o.dst = inner.close()
	}
	o.key("activities")
	inner := openObject(o.dst)
	for _, a := range d.activities {
		inner.key(a.name)
		inner.dst = a.appendJSON(inner.dst)
	}
	o.dst = inner.close()
	if len(d.transitions) > 0 {
		o.key("transitions")
		o.dst = d.appendTransitions(o.dst)
	}
	return o.close()
}

func (a *activityDef) appendJSON(dst []byte) []byte {
	o := openObject(dst)
	o.text("type", string(a.kind))
	o.node("input", a.input)
	o.node("output", a.output)
	if a.timeout > 0 {
		o.text("timeout", a.timeout.String())
	}
	if a.within > 0 {
		o.text("within", a.within.String())
	}
	if a.join != "" {
		o.text("join", string(a.join))
	}
	for _, v := range a.values {
		o.node(v.key, v.node)
	}
	switch a.kind {
	case TypeWorker:
		a.appendWorker(o)
	case TypeAwait:
		o.boolean("await", a.awaited)
		a.appendRetry(o)
	case TypeHook:
		a.appendSignal(o)
	case TypeSignal:
		o.text("topic", a.topic)
		o.text("mode", either(a.all, "all", "one"))
	case TypeCycle:
		o.text("to", a.to.text)
		o.integer("max", a.max)
	case TypeInterrupt:
		o.boolean("throw", a.throw)
		o.boolean("descend", a.descend)
	}
	return o.close()
}

func (a *activityDef) appendWorker(o *objectWriter) {
	o.text("topic", a.topic)
	if a.class != "" {
		o.text("class", a.class)
	}
	a.appendRetry(o)
	if a.each != nil {
		o.text("each", a.eachText)
		o.integer("parallel", a.parallel)
		o.text("each_errors", either(a.collect, "collect", "fail"))
	}
}

// appendSignal writes the signal that a hook waits for.
func (a *activityDef) appendSignal(o *objectWriter) {
	if a.topic == "" {
		return
	}
	o.text("signal", a.topic)
	o.boolean("repeat", a.repeat)
	if a.maxAge > 0 {
		o.text("expires", a.maxAge.String())
	}
}

func (a *activityDef) appendRetry(o *objectWriter) {
	o.key("retry")
	r := openObject(o.dst)
	r.integer("attempts", a.retry.Attempts)
	r.text("backoff", a.retry.Backoff.String())
	r.key("factor")
	r.dst = append(r.dst, a.factor...)
	r.text("max", a.retry.Max.String())
	r.key("jitter")
	r.dst = append(r.dst, a.jitter...)
	o.dst = r.close()
}

func either(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// appendTransitions requires that the transitions of one activity are adjacent.
func (d *definition) appendTransitions(dst []byte) []byte {
	o := openObject(dst)
	for i, t := range d.transitions {
		if i == 0 || d.transitions[i-1].from != t.from {
			o.key(t.from)
			o.dst = append(o.dst, '[')
		} else {
			o.dst = append(o.dst, ',')
		}
		item := openObject(o.dst)
		item.text("to", t.to)
		if t.onError {
			item.text("on", "error")
		}
		if t.when != nil {
			item.text("when", t.condition)
		}
		o.dst = item.close()
		if i+1 == len(d.transitions) || d.transitions[i+1].from != t.from {
			o.dst = append(o.dst, ']')
		}
	}
	return o.close()
}

// objectWriter writes the members of an object.
type objectWriter struct {
	dst   []byte
	start int
}

func openObject(dst []byte) *objectWriter {
	return &objectWriter{dst: append(dst, '{'), start: len(dst) + 1}
}

func (o *objectWriter) key(name string) {
	if len(o.dst) > o.start {
		o.dst = append(o.dst, ',')
	}
	o.dst = append(canonical.AppendString(o.dst, name), ':')
}

func (o *objectWriter) text(name, value string) {
	o.key(name)
	o.dst = canonical.AppendString(o.dst, value)
}

func (o *objectWriter) boolean(name string, value bool) {
	o.key(name)
	o.dst = strconv.AppendBool(o.dst, value)
}

func (o *objectWriter) integer(name string, value int) {
	o.key(name)
	o.dst = strconv.AppendInt(o.dst, int64(value), 10)
}

// node writes a member if n is not nil.
func (o *objectWriter) node(name string, n *node) {
	if n != nil {
		o.key(name)
		o.dst = n.appendJSON(o.dst)
	}
}

func (o *objectWriter) close() []byte { return append(o.dst, '}') }
