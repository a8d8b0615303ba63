package wire

import (
	"encoding/json"
	"strconv"
)

// quick reads the one spelling that Encode writes: known members in their order, no
// space, plain text. It gives up on anything else, which encoding/json then reads;
// what it does read, it reads as that would.
type quick struct {
	b      []byte
	i      int
	failed bool
}

// maxQuickDepth bounds the nesting of a payload that quick skips.
const maxQuickDepth = 64

// member is where the value of a member goes: a pointer to it, or a function that
// reads it.
type member struct {
	name string
	to   any
}

// quickly fills v and reports whether it could.
func quickly(b []byte, v any) bool {
	q := &quick{b: b}
	switch v := v.(type) {
	case *Hint:
		q.hint(v)
	case *Request:
		q.request(v)
	case *Response:
		q.response(v)
	}
	return !q.failed && q.i == len(b)
}

func (q *quick) hint(h *Hint) {
	q.object(
		member{"kind", (*string)(&h.Kind)}, member{"job", &h.Job}, member{"row", &h.Row},
		member{"activity", &h.Activity}, member{"dad", &h.DAD}, member{"turn", &h.Turn},
		member{"flow", &h.Flow}, member{"version", &h.Version}, member{"response", func() {
			h.Response = &Response{}
			q.response(h.Response)
		}},
	)
}

func (q *quick) request(r *Request) {
	q.object(
		member{"space", &r.Space}, member{"job", &r.Job}, member{"key", &r.Key}, member{"generation", &r.Generation},
		member{"flow", &r.Flow}, member{"version", &r.Version}, member{"activity", &r.Activity}, member{"dad", &r.DAD},
		member{"element", &r.Element}, member{"topic", &r.Topic}, member{"request", &r.Request}, member{"turn", &r.Turn},
		member{"try", &r.Try}, member{"attempts", &r.Attempts}, member{"fence", &r.Fence},
		member{"timeout_ms", &r.TimeoutMS}, member{"input", &r.Input}, member{"trace", &r.Trace},
	)
}

func (q *quick) response(r *Response) {
	q.object(
		member{"kind", (*string)(&r.Kind)}, member{"code", &r.Code}, member{"output", &r.Output}, member{"ref", &r.Ref},
		member{"error", func() {
			f := &Failure{}
			r.Error = f
			q.object(member{"class", &f.Class}, member{"message", &f.Message}, member{"data", &f.Data}, member{"stack", &f.Stack})
		}},
		member{"retry_after_ms", &r.RetryAfterMS}, member{"pauses", func() {
			q.want('[')
			for more := true; more && !q.failed; more = q.eat(',') {
				r.Pauses = append(r.Pauses, Pause{})
				q.pause(&r.Pauses[len(r.Pauses)-1])
			}
			q.want(']')
		}},
		member{"undone", &r.Undone},
	)
}

func (q *quick) pause(p *Pause) {
	q.object(
		member{"kind", (*string)(&p.Kind)}, member{"name", &p.Name}, member{"position", &p.Position}, member{"for_us", &p.For},
		member{"topic", &p.Topic}, member{"key", &p.Key}, member{"flow", &p.Flow}, member{"version", &p.Version},
		member{"input", &p.Input},
	)
}

func (q *quick) eat(c byte) bool {
	if q.i < len(q.b) && q.b[q.i] == c {
		q.i++
		return true
	}
	return false
}

func (q *quick) want(c byte) {
	if !q.eat(c) {
		q.failed = true
	}
}

// object reads members, of which any may be missing.
func (q *quick) object(members ...member) {
	q.want('{')
	for more := true; more && !q.failed; more = q.eat(',') {
		name := q.plain()
		q.want(':')
		at := 0
		for at < len(members) && members[at].name != string(name) {
			at++
		}
		if at == len(members) || q.failed {
			q.failed = true
			return
		}
		q.value(members[at].to)
		members = members[at+1:]
	}
	q.want('}')
}

func (q *quick) value(to any) {
	switch to := to.(type) {
	case *string:
		*to = string(q.plain())
	case *int:
		*to = int(q.number())
	case *int64:
		*to = q.number()
	case *bool:
		*to = true // false is left out
		for _, c := range []byte("true") {
			q.want(c)
		}
	case *json.RawMessage:
		*to = q.raw()
	case func():
		to()
	}
}

// plain reads a string without escapes, in ASCII.
func (q *quick) plain() []byte {
	q.want('"')
	for start := q.i; q.i < len(q.b); q.i++ {
		switch c := q.b[q.i]; {
		case c == '"':
			q.i++
			return q.b[start : q.i-1]
		case c < ' ' || c == '\\' || c >= 0x80:
			q.failed = true
			return nil
		}
	}
	q.failed = true
	return nil
}

func (q *quick) number() int64 {
	start := q.i
	q.eat('-')
	for q.i < len(q.b) && '0' <= q.b[q.i] && q.b[q.i] <= '9' {
		q.i++
	}
	digits := q.b[start:q.i]
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != string(digits) {
		q.failed = true
	}
	return n
}

// raw reads a payload, but for null, and copies it.
func (q *quick) raw() json.RawMessage {
	start, depth, quoted := q.i, 0, false
	for ; q.i < len(q.b) && depth <= maxQuickDepth; q.i++ {
		c := q.b[q.i]
		switch {
		case quoted && c == '\\':
			q.i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			return q.checked(start)
		case c == '}' || c == ']':
			depth--
		}
	}
	q.failed = true
	return nil
}

func (q *quick) checked(start int) json.RawMessage {
	p := append(json.RawMessage(nil), q.b[start:q.i]...)
	if string(p) == "null" || !json.Valid(p) || p[0] <= ' ' || p[len(p)-1] <= ' ' {
		q.failed = true
	}
	return p
}
