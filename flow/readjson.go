package flow

import "github.com/quipu-journal/quipu/canonical"

// readJSON reads JSON into nodes. Unlike canonical.Payload it goes on after a duplicate
// key, so that it is one fault among others.
func readJSON(src []byte, c *collector) *node {
	r := jsonReader{Scanner: canonical.Scan(src), src: src, next: position{1, 1}}
	n := r.value()
	if f := r.End(); f != nil {
		c.add(r.place(f.Offset), "", "", "not JSON: %s", f.Reason)
		return nil
	}
	return n
}

type jsonReader struct {
	canonical.Scanner
	src     []byte
	counted int      // next is the position of this byte
	next    position // positions are read in ascending order
}

// place turns an offset into a position.
func (r *jsonReader) place(offset int) position {
	for ; r.counted < offset; r.counted++ {
		switch b := r.src[r.counted]; {
		case b == '\n':
			r.next = position{r.next.line + 1, 1}
		case b&0xC0 != 0x80: // not within a character
			r.next.column++
		}
	}
	return r.next
}

func (r *jsonReader) value() *node {
	n := &node{position: r.place(r.At()), size: 1}
	switch r.Peek() {
	case '{':
		n.kind = kindMap
		for r.Enter('{'); r.Next('}'); {
			m := member{position: r.place(r.At())}
			m.key, m.value = string(r.Key()), r.value()
			n.members = append(n.members, m)
			n.size += m.value.size
		}
	case '[':
		n.kind = kindList
		for r.Enter('['); r.Next(']'); {
			item := r.value()
			n.items = append(n.items, item)
			n.size += item.size
		}
	default:
		text := r.Form()
		if text == nil {
			return n // not used: there is a fault
		}
		n.kind, n.text = kindOf(text), string(text)
		if n.kind == kindString {
			n.text = canonical.Unquote(text)
		}
	}
	return n
}
