package flow

import "strings"

// bracketed reads an alias, or a list or a mapping in brackets.
func (r *yamlReader) bracketed() *node {
	open := r.here()
	n := r.newNode(kindList, open)
	end := byte(']')
	switch r.at(0) {
	case '*':
		r.values--
		return r.alias()
	case '{':
		n.kind, end = kindMap, '}'
	}
	r.nest(1)
	for r.step(); r.inside(open); {
		if r.at(0) == end {
			r.step()
			break
		}
		if r.entry(n); !r.inside(open) {
			break
		}
		if r.at(0) == ',' {
			r.step()
		} else if r.at(0) != end {
			r.fail("a comma or %c must be here", end)
		}
	}
	r.nest(-1)
	return n
}

// inside goes to the next token within brackets; false if there is none.
func (r *yamlReader) inside(open position) bool {
	r.skip()
	if !r.failed && (r.pos == len(r.src) || r.marker()) {
		r.failAt(open, r.src[open.offset:open.offset+1], "a bracket that is not closed")
	}
	return !r.failed
}

// entry reads an item of a list or a member of a mapping in brackets.
func (r *yamlReader) entry(n *node) {
	open := n.position
	from := r.here()
	own := r.properties()
	if own.given && !r.inside(open) {
		return
	}
	switch c := r.at(0); {
	case c == ',' && !own.given:
		r.fail("a value is missing before the comma")
	case c == '?' && r.ends(1):
		r.fail("a key is written before its colon, without a question mark")
	case c == '[' || c == '{' || c == '*':
		value := r.bracketed()
		if r.inside(open) && (n.kind == kindMap || r.at(0) == ':') {
			r.failAt(from, "", "a key must be a string; quote it")
			return
		}
		n.append(r.named(own, value))
	case own.given && (c == ',' || c == ']') && n.kind == kindList:
		n.append(r.named(own, r.null(own.position)))
	default:
		key, isKey := r.word(-1, true)
		if own.given && (isKey || n.kind == kindMap) {
			r.failAt(from, "", "an anchor or a tag of a key; one of a value begins behind the colon")
		}
		switch {
		case n.kind == kindMap:
			r.pair(n, key, isKey, open)
		case isKey: // a mapping of one key
			one := r.newNode(kindMap, key.position)
			r.pair(one, key, true, open)
			n.append(one)
		default:
			n.append(r.named(own, r.scalar(key, own.str)))
		}
	}
}

// pair reads the value of a key in brackets, and enters both. A key without a colon has the value
// null.
func (r *yamlReader) pair(n *node, key word, isKey bool, open position) {
	m, isString := r.member(key)
	switch {
	case isKey:
		if r.step(); r.inside(open) {
			m.value = r.value(m.position, open)
		}
	case !key.quoted && strings.IndexByte(key.text, ':') > 0:
		r.failAt(key.position, key.text, "a colon has a space behind it where it ends a key")
	default:
		m.value = r.null(m.position)
	}
	if isString {
		n.enter(m)
	}
}

// value reads what is behind the colon of a key in brackets; null, at the key, if nothing is.
func (r *yamlReader) value(key, open position) *node {
	own := r.properties()
	if own.given {
		if key = own.position; !r.inside(open) {
			return nil
		}
	}
	switch c := r.at(0); {
	case c == ',' || c == ']' || c == '}':
		return r.named(own, r.null(key))
	case c == '[' || c == '{' || c == '*':
		return r.named(own, r.bracketed())
	}
	text, second := r.word(-1, true)
	if second {
		return r.fail("a second colon: a mapping within another has braces of its own")
	}
	return r.named(own, r.scalar(text, own.str))
}
