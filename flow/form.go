package flow

import (
	"strconv"

	"github.com/quipu-journal/quipu/canonical"
)

// appendJSON writes a definition without faults as JSON with defaults spelled
// out; its canonical form is the flow's.
func (d *definition) appendJSON(dst []byte) []byte {
	o := openObject(dst)
	o.text("flow", d.name)
	o.text("version", d.version)
	o.text("identity", string(d.identity))
	o.node("input", d.input)
	o.node("output", d.output)
	if d.expire > 0 {
		o.text("expire", d.expire.String())
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
	if a.kind != TypeWorker {
		return o.close()
	}
	o.text("topic", a.topic)
	o.node("input", a.input)
	if a.timeout > 0 {
		o.text("timeout", a.timeout.String())
	}
	if a.within > 0 {
		o.text("within", a.within.String())
	}
	if a.class != "" {
		o.text("class", a.class)
	}
	o.key("retry")
	r := openObject(o.dst)
	r.key("attempts")
	r.dst = strconv.AppendInt(r.dst, int64(a.retry.Attempts), 10)
	r.text("backoff", a.retry.Backoff.String())
	r.key("factor")
	r.dst = append(r.dst, a.factor...)
	r.text("max", a.retry.Max.String())
	r.key("jitter")
	r.dst = append(r.dst, a.jitter...)
	o.dst = r.close()
	return o.close()
}

// appendTransitions relies on the transitions of one activity standing together.
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

// node writes a member unless it is missing.
func (o *objectWriter) node(name string, n *node) {
	if n != nil {
		o.key(name)
		o.dst = n.appendJSON(o.dst)
	}
}

func (o *objectWriter) close() []byte { return append(o.dst, '}') }
