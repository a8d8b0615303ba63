package flow

import (
	"strings"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// readJSON reads JSON into nodes, up to MaxNodes. Unlike canonical.Payload it goes on after a
// duplicate key, so that it is one fault among others.
func readJSON(src []byte, c *collector) *node {
	r := jsonReader{Scanner: canonical.Scan(src), src: src, next: position{line: 1, column: 1}}
	n := r.value()
	if r.values > MaxNodes {
		c.add(r.next, "", "", "more than %d values", MaxNodes)
		return nil
	}
	if f := r.End(); f != nil {
		c.add(r.place(f.Offset), "", "", "not JSON: %s", f.Reason)
		return nil
	}
	return n
}

type jsonReader struct {
	canonical.Scanner
	src    []byte
	next   position // positions are read in ascending order
	values int
}

// place turns an offset into a position.
func (r *jsonReader) place(offset int) position {
	for ; r.next.offset < offset; r.next.offset++ {
		switch b := r.src[r.next.offset]; {
		case b == '\n':
			r.next.line, r.next.column = r.next.line+1, 1
		case b&0xC0 != 0x80: // not within a character
			r.next.column++
		}
	}
	return r.next
}

func (r *jsonReader) value() *node {
	n := &node{position: r.place(r.At()), size: 1}
	if r.values++; r.values > MaxNodes {
		return n // not used: there is a fault
	}
	switch r.Peek() {
	case '{':
		n.kind = kindMap
		for r.Enter('{'); r.values <= MaxNodes && r.Next('}'); {
			m := member{position: r.place(r.At())}
			m.key, m.value = string(r.Key()), r.value()
			n.enter(m)
		}
	case '[':
		n.kind = kindList
		for r.Enter('['); r.values <= MaxNodes && r.Next(']'); {
			n.append(r.value())
		}
	default:
		text := r.Form()
		if text == nil {
			return n // not used: there is a fault
		}
		switch n.kind, n.text = kindOf(text), string(text); n.kind {
		case kindString:
			n.text = canonical.Unquote(text)
			n.bytes = len(n.text)
		case kindNumber:
			if spelled := strings.TrimSpace(string(r.src[n.offset:r.At()])); spelled != n.text {
				n.spelled = spelled
			}
		}
	}
	return n
}
