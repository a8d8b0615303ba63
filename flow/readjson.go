package flow

import (
	"errors"

	"github.com/quipu-journal/quipu/canonical"
)

// readJSON reads JSON into nodes. Unlike canonical.Payload it goes on after a
// key that comes twice, which is one fault among others.
func readJSON(src []byte, c *collector) *node {
	r := jsonReader{src: src, next: position{1, 1}}
	n := r.value(0)
	if r.space(); n != nil && r.failed == "" && r.pos < len(src) {
		r.fail("more text behind the value")
	}
	if r.failed != "" {
		c.add(r.place(r.pos), "", "", "not JSON: %s", r.failed)
		return nil
	}
	return n
}

type jsonReader struct {
	src     []byte
	pos     int
	counted int      // next is the place of this byte
	next    position // positions are asked for in ascending order
	failed  string
}

// place turns an offset into a position.
func (r *jsonReader) place(offset int) position {
	for ; r.counted < offset && r.counted < len(r.src); r.counted++ {
		switch b := r.src[r.counted]; {
		case b == '\n':
			r.next = position{r.next.line + 1, 1}
		case b&0xC0 != 0x80: // not within a character
			r.next.column++
		}
	}
	return r.next
}

func (r *jsonReader) fail(reason string) *node {
	if r.failed == "" {
		r.failed = reason
	}
	return nil
}

func (r *jsonReader) space() {
	for r.pos < len(r.src) && (r.src[r.pos] == ' ' || r.src[r.pos] == '\t' || r.src[r.pos] == '\n' || r.src[r.pos] == '\r') {
		r.pos++
	}
}

// take moves past b if that comes next.
func (r *jsonReader) take(b byte) bool {
	r.space()
	if r.pos < len(r.src) && r.src[r.pos] == b {
		r.pos++
		return true
	}
	return false
}

func (r *jsonReader) value(depth int) *node {
	r.space()
	if r.pos >= len(r.src) {
		return r.fail("the text ends where a value should be")
	}
	if depth > canonical.MaxDepth {
		return r.fail("nested too deep")
	}
	n := &node{position: r.place(r.pos), size: 1}
	switch r.src[r.pos] {
	case '{':
		n.kind = kindMap
		r.list('}', func() { r.member(n, depth) })
	case '[':
		n.kind = kindList
		r.list(']', func() {
			if item := r.value(depth + 1); item != nil {
				n.items = append(n.items, item)
				n.size += item.size
			}
		})
	default:
		r.scalar(n)
	}
	if r.failed != "" {
		return nil
	}
	return n
}

// list reads what stands between brackets, comma by comma.
func (r *jsonReader) list(end byte, read func()) {
	r.pos++
	if r.take(end) {
		return
	}
	for r.failed == "" {
		read()
		if r.failed != "" || r.take(end) {
			return
		}
		if !r.take(',') {
			r.fail("',' or '" + string(end) + "' expected")
		}
	}
}

func (r *jsonReader) member(n *node, depth int) {
	r.space()
	if r.pos >= len(r.src) || r.src[r.pos] != '"' {
		r.fail("a key expected")
		return
	}
	m := member{position: r.place(r.pos)}
	key := &node{}
	if r.scalar(key); r.failed != "" {
		return
	}
	if !r.take(':') {
		r.fail("':' expected")
		return
	}
	m.key, m.value = key.text, r.value(depth+1)
	if m.value != nil {
		n.members = append(n.members, m)
		n.size += m.value.size
	}
}

// scalar leaves judgement and spelling to the canonical form.
func (r *jsonReader) scalar(n *node) {
	end := r.scalarEnd()
	text, err := canonical.Payload(r.src[r.pos:end])
	if refused := (*canonical.Error)(nil); errors.As(err, &refused) {
		r.pos += refused.Offset
		r.fail(refused.Reason)
		return
	}
	r.pos = end
	switch text[0] {
	case '"':
		n.kind, n.text = kindString, canonical.Unquote(text)
		return
	case 't', 'f':
		n.kind = kindBool
	case 'n':
		n.kind = kindNull
	default:
		n.kind = kindNumber
	}
	n.text = string(text)
}

func (r *jsonReader) scalarEnd() int {
	if r.src[r.pos] != '"' {
		for i := r.pos; i < len(r.src); i++ {
			switch r.src[i] {
			case ' ', '\t', '\n', '\r', ',', ':', ']', '}':
				return max(i, r.pos+1)
			}
		}
		return len(r.src)
	}
	for i := r.pos + 1; i < len(r.src); i++ {
		switch r.src[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(r.src)
}
