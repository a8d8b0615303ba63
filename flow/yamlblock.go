package flow

import (
	"cmp"
	"strings"
)

// block reads the node at pos, whose further lines are indented more than parent. Behind something
// in its line (inline) it is no mapping and no list, unless in brackets. named says that it already
// has an anchor or a tag, in a line above.
func (r *yamlReader) block(parent int, inline, named bool) *node {
	from := r.here()
	own := r.properties()
	if own.given {
		if named {
			return r.failAt(from, "", "a second anchor or tag of one value")
		}
		if r.lineEnds() {
			return r.named(own, r.below(from, parent, false, true))
		}
		inline = true
	}
	switch c := r.at(0); {
	case c == '-' && r.separatedAt(1):
		if inline {
			return r.fail("a list begins in a line of its own, or is written in brackets")
		}
		return r.list(r.pos - r.start)
	case c == '?' && r.separatedAt(1):
		return r.fail("a key is written before its colon, without a question mark")
	case c == '|' || c == '>':
		return r.named(own, r.blockText(parent))
	case c == '[' || c == '{' || c == '*':
		n := r.bracketed()
		if r.lineEnds(); r.at(0) == ':' {
			return r.fail("a key must be a string; quote it")
		}
		r.ended()
		return r.named(own, n)
	}
	key, isKey := r.word(parent, false)
	switch {
	case !isKey:
		r.ended()
		return r.named(own, r.scalar(key, own.str))
	case own.given:
		return r.failAt(from, "", "an anchor or a tag of a key; one of a value begins behind the colon, one of a mapping in the line above it")
	case inline:
		return r.fail("a colon makes a key of a text, and there is no room for one here: quote the text, or begin a new line")
	}
	return r.mapping(key)
}

// below reads the value whose anchor, tag, key or dash ended the line; null if none is there. It is
// indented more than parent; the list of a key may be indented as the key is.
func (r *yamlReader) below(from position, parent int, isValue, named bool) *node {
	switch indent := r.next(); {
	case indent > parent:
		return r.block(parent, false, named)
	case isValue && indent == parent && r.at(0) == '-' && r.separatedAt(1):
		return r.list(indent)
	}
	return r.null(from)
}

// list reads the items whose dashes are in the column indent.
func (r *yamlReader) list(indent int) *node {
	n := r.newNode(kindList, r.here())
	r.nest(1)
	for !r.failed {
		from := r.here()
		r.step()
		blanks := r.pos
		if r.lineEnds() {
			n.append(r.below(from, indent, false, false))
		} else {
			inline := strings.IndexByte(r.src[blanks:r.pos], '\t') >= 0 // its column depends on the reader
			n.append(r.block(indent, inline, false))
		}
		next := r.next()
		if next < indent || next == indent && (r.at(0) != '-' || !r.separatedAt(1)) {
			break
		}
		if next > indent {
			r.fail("indented more than the list that it would belong to")
		}
	}
	r.nest(-1)
	return n
}

// mapping reads the members whose keys are in the column of the first, which is read up to its colon.
func (r *yamlReader) mapping(key word) *node {
	n := r.newNode(kindMap, key.position)
	indent := key.offset - r.start
	r.nest(1)
	for !r.failed {
		r.step()
		m, isString := r.member(key)
		if r.lineEnds() {
			m.value = r.below(m.position, indent, true, false)
		} else {
			m.value = r.block(indent, true, false)
		}
		if isString {
			n.enter(m)
		}
		next := r.next()
		if next < indent {
			break
		}
		if next > indent {
			r.fail("indented more than the mapping that it would belong to")
			break
		}
		var isKey bool
		if c := r.at(0); (c == '-' || c == '?') && r.separatedAt(1) || strings.IndexByte("[{*&!|>", c) >= 0 {
			r.fail("a key of the mapping must be here: a text with a colon and a space behind it")
		} else if key, isKey = r.word(indent, false); !isKey {
			r.failAt(key.position, key.text, "a key must have a colon and a space behind it")
		}
	}
	r.nest(-1)
	return n
}

// member is one with a key, and still without its value. A key that is no string is a fault, and its
// member has no place in the mapping.
func (r *yamlReader) member(key word) (m member, isString bool) {
	k, _, refused := plain(key.text)
	switch {
	case strings.IndexByte(key.text, 0) >= 0:
		r.add(key.position, "", "", "U+0000 is not allowed")
	case !key.quoted && key.text == "<<":
		r.add(key.position, "", key.text, "merge keys are not supported; write the values out")
	case !key.quoted && (k != kindString || refused != ""):
		r.add(key.position, "", key.text, "a key must be a string; quote it")
	default:
		isString = true
	}
	return member{position: key.position, key: key.text}, isString
}

// properties are the anchor and the tag of a value.
type properties struct {
	given, str bool // str: tagged as a string
	anchor     string
	position
}

// properties reads an anchor and a tag, if they are there.
func (r *yamlReader) properties() (own properties) {
	own.position = r.here()
	for tags, anchors := 0, 0; r.at(0) == '&' || r.at(0) == '!'; own.given = true {
		from, sign := r.here(), r.at(0)
		name := r.name()
		if sign == '&' {
			own.anchor = name[1:]
			anchors++
		} else {
			if own.str = name == "!!str"; !own.str {
				r.add(from, "", name, "tags other than !!str on a scalar are not supported")
			}
			tags++
		}
		if name == "&" || anchors > 1 || tags > 1 {
			r.failAt(from, name, "an anchor has a name, and a value has one anchor and one tag at most")
		}
		for isBlank(r.at(0)) {
			r.step()
		}
	}
	return own
}

// name reads an anchor, an alias or a tag, with its sign.
func (r *yamlReader) name() string {
	from := r.pos
	for r.step(); !r.separatedAt(0) && strings.IndexByte("[]{},", r.at(0)) < 0; {
		r.step()
	}
	return r.src[from:r.pos]
}

// named gives a value its anchor and its tag.
func (r *yamlReader) named(own properties, n *node) *node {
	if n == nil || !own.given {
		return n
	}
	switch {
	case n.offset < own.offset:
		return r.failAt(own.position, "", "an alias has no anchor and no tag of its own")
	case !own.str || n.kind == kindString:
	case n.kind == kindList || n.kind == kindMap:
		r.add(own.position, "", "!!str", "tags other than !!str on a scalar are not supported")
	case n.offset == own.offset: // left out
		n.kind, n.text = kindString, ""
	default:
		n.kind, n.text = kindString, cmp.Or(n.spelled, n.text)
	}
	if own.anchor != "" {
		r.anchors[own.anchor] = n
	}
	return n
}

// alias returns the value of an anchor, counted as if it were written there.
func (r *yamlReader) alias() *node {
	from := r.here()
	name := r.name()[1:]
	target := r.anchors[name]
	if target == nil {
		r.add(from, "", name, "no anchor of this name comes before it")
		return nil
	}
	r.values, r.bytes = r.values+target.size, r.bytes+target.bytes
	if r.values > MaxNodes {
		r.stop(from, name, "more than %d values, with aliases", MaxNodes)
	} else if r.bytes > MaxDefinitionBytes {
		r.stop(from, name, "more than %d bytes, with aliases", MaxDefinitionBytes)
	}
	return target
}
