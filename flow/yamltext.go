package flow

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// word is a text that is a scalar or a key.
type word struct {
	position
	text   string
	quoted bool
}

// scalar is the value of a word; str says that it is tagged as a string.
func (r *yamlReader) scalar(w word, str bool) *node {
	n := r.newNode(kindString, w.position)
	n.text, n.bytes = w.text, len(w.text)
	if !w.quoted && !str {
		var refused string
		if n.kind, n.text, refused = plain(w.text); refused != "" {
			r.add(n.position, "", w.text, "%s", refused)
		}
		if n.kind == kindNumber && n.text != w.text {
			n.spelled = w.text
		}
	}
	if strings.IndexByte(n.text, 0) >= 0 {
		r.add(n.position, "", "", "a string with U+0000")
	}
	return n
}

// word reads a quoted or a plain text whose further lines are indented more than parent. It is a key
// if a colon follows, at which pos then is.
func (r *yamlReader) word(parent int, flow bool) (w word, isKey bool) {
	w = word{position: r.here()}
	line := r.line
	switch c := r.at(0); {
	case c == '"' || c == '\'':
		w.text, w.quoted = r.quotedText(), true
		r.lineEnds()
		isKey = r.at(0) == ':' && (flow || r.separatedAt(1))
	case strings.IndexByte(",[]{}#&*!|>'\"%@`", c) >= 0 || strings.IndexByte("-?:", c) >= 0 && r.alone(flow):
		r.fail("no text begins with %q; quote it", c)
		return w, false
	default:
		w.text = r.plainText(parent, flow)
		isKey = r.at(0) == ':' && (r.separatedAt(1) || flow && r.ends(1))
	}
	if isKey && !flow && r.line != line {
		r.fail("a key begins in no line that continues a text: check the indentation")
	}
	return w, isKey && !r.failed
}

// ends says that what is at a distance from pos ends a plain text in brackets.
func (r *yamlReader) ends(distance int) bool {
	return r.separatedAt(distance) || strings.IndexByte(",[]{}", r.at(distance)) >= 0
}

// alone says that the sign at pos has no text behind it.
func (r *yamlReader) alone(flow bool) bool { return r.separatedAt(1) || flow && r.ends(1) }

// plainLine reads a text up to what ends it in its line, and leaves out white space at its end.
func (r *yamlReader) plainLine(flow bool) string {
	from, end := r.pos, r.pos
	for r.pos < len(r.src) {
		c := r.src[r.pos]
		if isBreak(c) || c == '#' && r.pos > from && isBlank(r.src[r.pos-1]) || c == ':' && r.alone(flow) ||
			flow && strings.IndexByte(",[]{}", c) >= 0 {
			break
		}
		if r.pos++; !isBlank(c) {
			end = r.pos
		}
	}
	if r.at(0) != ':' {
		r.pos = end
	}
	return r.src[from:end]
}

// plainText reads a text without quotes. A line break in it is a space, and each empty line a line
// break.
func (r *yamlReader) plainText(parent int, flow bool) string {
	text := r.plainLine(flow)
	var all strings.Builder
	for r.at(0) != ':' {
		pos, line, start := r.pos, r.line, r.start
		breaks := r.breaks()
		c := r.at(0)
		more := breaks > 0 && c != 0 && c != '#' && !r.marker() && (flow || r.pos-r.start > parent)
		if more && !flow && strings.IndexByte(r.src[r.start:r.pos], '\t') >= 0 {
			indent := len(r.src[r.start:]) - len(strings.TrimLeft(r.src[r.start:], " "))
			more = indent > parent
		}
		if more && flow {
			more = strings.IndexByte(",[]{}", c) < 0 && (c != ':' || !r.ends(1))
		}
		if !more {
			r.pos, r.line, r.start = pos, line, start
			break
		}
		if all.Len() == 0 {
			all.WriteString(text)
		}
		fold(&all, breaks)
		all.WriteString(r.plainLine(flow))
	}
	if all.Len() > 0 {
		return all.String()
	}
	return text
}

// breaks goes over white space, and counts the line breaks in it.
func (r *yamlReader) breaks() (n int) {
	for r.pos < len(r.src) {
		switch c := r.src[r.pos]; {
		case isBlank(c):
			r.pos++
		case isBreak(c):
			r.newline()
			n++
		default:
			return n
		}
	}
	return n
}

// fold writes what line breaks within a text mean.
func fold(text *strings.Builder, breaks int) {
	if breaks == 1 {
		text.WriteByte(' ')
	}
	for range breaks - 1 {
		text.WriteByte('\n')
	}
}

// quotedText reads a text in quotes.
func (r *yamlReader) quotedText() string {
	open, quote := r.here(), r.at(0)
	special := "\"\\\r\n"
	if quote == '\'' {
		special = "'\r\n"
	}
	var text strings.Builder
	for r.pos++; ; {
		run := strings.IndexAny(r.src[r.pos:], special)
		if run < 0 || r.marker() {
			r.failAt(open, r.src[open.offset:min(len(r.src), open.offset+maxFaultText)], "a text without its closing quote")
			return ""
		}
		part := r.src[r.pos : r.pos+run]
		r.pos += run
		switch c := r.src[r.pos]; {
		case isBreak(c):
			text.WriteString(strings.TrimRight(part, " \t"))
			fold(&text, r.breaks())
		case c == '\\':
			text.WriteString(part)
			r.escape(&text)
		case quote == '\'' && r.at(1) == '\'':
			text.WriteString(part)
			text.WriteByte('\'')
			r.pos += 2
		default:
			r.pos++
			if text.Len() == 0 {
				return part
			}
			text.WriteString(part)
			return text.String()
		}
	}
}

// escapes are those of one character.
var escapes = map[byte]string{
	'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f", 'r': "\r", 'e': "\x1b", ' ': " ",
	'"': `"`, '/': "/", '\\': `\`, 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029",
}

// escape reads the escape at pos. A line break that is escaped is none.
func (r *yamlReader) escape(text *strings.Builder) {
	switch c := r.at(1); c {
	case '\n', '\r':
		r.pos++
		for range r.breaks() - 1 {
			text.WriteByte('\n')
		}
	case 'x':
		r.code(text, 2)
	case 'u':
		r.code(text, 4)
	case 'U':
		r.code(text, 8)
	default:
		s, known := escapes[c]
		if !known {
			r.fail("an escape that YAML does not know; a backslash is written twice")
			return
		}
		text.WriteString(s)
		r.pos += 2
	}
}

// code reads an escape of so many hexadecimal digits. As in JSON, two \u may be halves of one
// character.
func (r *yamlReader) code(text *strings.Builder, digits int) {
	hex := func(at int) rune {
		if at+2+digits > len(r.src) || r.src[at] != '\\' || r.src[at+1] != r.at(1) {
			return -1
		}
		n, err := strconv.ParseUint(r.src[at+2:at+2+digits], 16, 32)
		if err != nil || n > utf8.MaxRune {
			return -1
		}
		return rune(n)
	}
	c, next := hex(r.pos), r.pos+2+digits
	if digits == 4 && utf16.IsSurrogate(c) {
		c = utf16.DecodeRune(c, hex(next))
		next += 6
		if c == utf8.RuneError {
			c = -1
		}
	}
	if c < 0 || utf16.IsSurrogate(c) {
		r.fail("an escape that is no character: %d hexadecimal digits must follow", digits)
		return
	}
	text.WriteRune(c)
	r.pos = next
}

// blockText reads a text that begins with | or > and has its lines below.
func (r *yamlReader) blockText(parent int) *node {
	n := r.newNode(kindString, r.here())
	folded, keep, indent := r.at(0) == '>', byte(0), -1
	for r.step(); ; r.step() {
		if c := r.at(0); (c == '-' || c == '+') && keep == 0 {
			keep = c
		} else if c >= '1' && c <= '9' && indent < 0 {
			indent = max(parent, 0) + int(c-'0')
		} else {
			break
		}
	}
	if r.ended(); r.at(0) == '#' {
		r.comment()
	}
	if r.pos < len(r.src) {
		r.newline()
	}
	n.text = r.blockLines(parent, indent, folded, keep)
	n.bytes = len(n.text)
	if strings.IndexByte(n.text, 0) >= 0 {
		r.add(n.position, "", "", "a string with U+0000")
	}
	return n
}

// blockLines reads the lines of such a text. indent is −1 if the first line that is not empty tells
// it. keep is - without a line break at the end, + with all of them, or 0 with one.
func (r *yamlReader) blockLines(parent, indent int, folded bool, keep byte) string {
	var text strings.Builder
	breaks, started, spaced := 0, false, false // spaced: the line before begins with white space
	for most := 0; r.pos < len(r.src); {
		line := r.src[r.pos:]
		if end := strings.IndexAny(line, "\r\n"); end >= 0 {
			line = line[:end]
		}
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		if spaces == len(line) && (indent < 0 || spaces <= indent) { // an empty line
			most = max(most, spaces)
			if breaks++; r.lineBehind(line) {
				continue
			}
			breaks--
			break
		}
		if indent < 0 {
			if indent = max(spaces, parent+1); most > indent && spaces > parent {
				r.fail("the first lines of the text are empty, and longer than its indentation")
				return ""
			}
		}
		if spaces < indent || r.marker() {
			break
		}
		line = line[indent:]
		white := line[0] == ' ' || line[0] == '\t'
		if started && folded && !white && !spaced {
			fold(&text, breaks)
		} else {
			text.WriteString(strings.Repeat("\n", breaks))
		}
		text.WriteString(line)
		started, spaced, breaks = true, white, 0
		r.pos += indent
		if r.lineBehind(line) {
			breaks = 1
		}
	}
	if keep == '+' {
		return text.String() + strings.Repeat("\n", breaks)
	}
	if keep == 0 && started && breaks > 0 {
		text.WriteByte('\n')
	}
	return text.String()
}

// lineBehind goes behind the rest of a line and its break; false if the source ends without one.
func (r *yamlReader) lineBehind(rest string) bool {
	if r.pos += len(rest); r.pos == len(r.src) {
		return false
	}
	r.newline()
	return true
}
