package flow

import (
	"strings"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// readYAML reads one YAML document into nodes, in one pass and in time and memory that grow with the
// source, up to MaxNodes. It accepts the part of YAML that has one meaning in JSON: mappings with
// string keys, lists, scalars (see plain), anchors and aliases.
func readYAML(src []byte, c *collector) *node {
	r := &yamlReader{collector: c, src: string(src), line: 1, column: 1, anchors: map[string]*node{}}
	if !r.printable() {
		return nil
	}
	root := r.stream()
	switch {
	case r.failed:
		return nil
	case root == nil && len(c.faults) == 0:
		c.add(position{line: 1, column: 1}, "", "", "the file is empty")
	}
	return root
}

// yamlReader is at the byte pos of a source. After a fault that ends the reading it is at the end of
// it, so that all loops end.
type yamlReader struct {
	*collector
	src     string
	pos     int
	line    int // of pos, from 1
	start   int // of the line of pos
	counted int // column is that of this byte
	column  int
	anchors map[string]*node
	values  int // with those of aliases
	bytes   int // of the texts that aliases repeat
	depth   int
	failed  bool
}

// printable refuses characters that YAML does not have.
func (r *yamlReader) printable() bool {
	for i := 0; i < len(r.src); i++ {
		if c := r.src[i]; c < ' ' && c != '\t' && !isBreak(c) {
			p := (&jsonReader{src: []byte(r.src), next: position{line: 1, column: 1}}).place(i)
			r.add(p, "", "", `a control character; write it in double quotes as "\u%04X"`, c)
			return false
		}
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func isBreak(c byte) bool { return c == '\n' || c == '\r' }

// at is the byte at a distance from pos, 0 behind the end.
func (r *yamlReader) at(distance int) byte {
	if i := r.pos + distance; i < len(r.src) {
		return r.src[i]
	}
	return 0
}

// separatedAt says that white space or the end is at a distance from pos.
func (r *yamlReader) separatedAt(distance int) bool {
	c := r.at(distance)
	return c == 0 || isBlank(c) || isBreak(c)
}

// here is the place of pos.
func (r *yamlReader) here() position {
	if r.counted < r.start || r.counted > r.pos {
		r.counted, r.column = r.start, 1
	}
	r.column += utf8.RuneCountInString(r.src[r.counted:r.pos])
	r.counted = r.pos
	return position{line: r.line, column: r.column, offset: r.pos}
}

// fail adds a fault at pos that ends the reading, with the rest of the line as its text.
func (r *yamlReader) fail(format string, args ...any) *node {
	text, _, _ := strings.Cut(r.src[r.pos:min(len(r.src), r.pos+8*maxFaultText)], "\n")
	return r.failAt(r.here(), strings.TrimRight(text, "\r"), format, args...)
}

func (r *yamlReader) failAt(p position, text, format string, args ...any) *node {
	return r.stop(p, text, "not YAML: "+format, args...)
}

// stop ends the reading with a fault.
func (r *yamlReader) stop(p position, text, format string, args ...any) *node {
	if !r.failed {
		r.add(p, "", text, format, args...)
	}
	r.failed, r.pos = true, len(r.src)
	return nil
}

// newNode counts a value.
func (r *yamlReader) newNode(k kind, p position) *node {
	if r.values++; r.values > MaxNodes {
		r.stop(p, "", "more than %d values", MaxNodes)
	}
	return &node{kind: k, position: p, size: 1}
}

// null is a value that is left out.
func (r *yamlReader) null(p position) *node {
	n := r.newNode(kindNull, p)
	n.text = "null"
	return n
}

// nest counts how deep the reader is in mappings and lists; call it with −1 at their end.
func (r *yamlReader) nest(by int) {
	if r.depth += by; r.depth > canonical.MaxDepth {
		r.stop(r.here(), "", "nested deeper than %d", canonical.MaxDepth)
	}
}

// step goes over a character, unless the reading has ended.
func (r *yamlReader) step() { r.pos = min(r.pos+1, len(r.src)) }

// newline goes behind the line break at pos.
func (r *yamlReader) newline() {
	if r.at(0) == '\r' && r.at(1) == '\n' {
		r.pos++
	}
	r.pos++
	r.line, r.start = r.line+1, r.pos
}

// skip goes to the next token, over white space, comments and line breaks.
func (r *yamlReader) skip() {
	for r.pos < len(r.src) {
		switch c := r.src[r.pos]; {
		case isBlank(c):
			r.pos++
		case isBreak(c):
			r.newline()
		case c == '#':
			r.comment()
		default:
			return
		}
	}
}

// comment goes to the end of a comment's line.
func (r *yamlReader) comment() {
	if r.pos > r.start && !isBlank(r.src[r.pos-1]) {
		r.fail("a comment needs a space before its #")
	}
	for r.pos < len(r.src) && !isBreak(r.src[r.pos]) {
		r.pos++
	}
}

// lineEnds skips white space in the line, and says that no token is left in it.
func (r *yamlReader) lineEnds() bool {
	for isBlank(r.at(0)) {
		r.pos++
	}
	return r.pos == len(r.src) || isBreak(r.at(0)) || r.at(0) == '#' && (r.pos == r.start || isBlank(r.src[r.pos-1]))
}

// ended requires that nothing follows a value in its line.
func (r *yamlReader) ended() {
	switch {
	case r.lineEnds():
	case r.at(0) == '#':
		r.fail("a comment needs a space before its #")
	case r.at(0) == ':' && r.separatedAt(1):
		r.fail("a colon makes a key of a text, and there is no room for one here: quote the text, or begin a new line")
	default:
		r.fail("there is more behind the value")
	}
}

// marker says that --- or ... is at pos, alone or with white space behind it.
func (r *yamlReader) marker() bool {
	return r.pos == r.start && (strings.HasPrefix(r.src[r.pos:], "---") || strings.HasPrefix(r.src[r.pos:], "...")) &&
		r.separatedAt(3)
}

// next goes to the next token, the first of its line, and returns its indentation; −1 at the end of
// the document.
func (r *yamlReader) next() int {
	r.skip()
	if r.pos == len(r.src) || r.marker() {
		return -1
	}
	if strings.IndexByte(r.src[r.start:r.pos], '\t') >= 0 {
		r.fail(`a tab before the first character of a line; YAML indents with spaces`)
		return -1
	}
	return r.pos - r.start
}

// stream reads all documents. One of them may have a value.
func (r *yamlReader) stream() (root *node) {
	for r.pos < len(r.src) {
		indent, inline := r.next(), false
		switch {
		case r.marker() && r.at(0) == '.':
			r.pos += 3
			r.ended()
			continue
		case r.marker():
			r.pos += 3
			if inline = !r.lineEnds(); !inline {
				indent = r.next()
			}
		case indent == 0 && r.at(0) == '%':
			r.fail("directives are not supported; leave the line out")
		}
		if r.pos == len(r.src) || !inline && indent < 0 {
			continue
		}
		if root != nil {
			r.add(r.here(), "", "", "a file holds one flow, this is a second document")
			return root
		}
		root = r.block(-1, inline, false)
		if r.next() >= 0 {
			r.fail("this line belongs to nothing above it: check the indentation")
		}
	}
	return root
}
