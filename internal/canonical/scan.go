package canonical

import (
	"fmt"
	"unicode/utf8"
)

// Scanner reads a JSON text from start to end, by calls that say what is expected next:
//
//	for s.Enter('{'); s.Next('}'); {
//		switch string(s.Key()) {
//		case "amount":
//			amount = s.Int()
//		default:
//			s.Form()
//		}
//	}
//	err := s.End()
//
// Objects and arrays are named by their brackets: '{' and '}', '[' and ']'.
//
// The first fault stays. After it there is nothing to read: loops end and values are zero, so a
// caller reads on and checks End alone. Returned bytes lie in the text, without an allocation,
// if the text spells them as they are.
type Scanner struct {
	// Loose makes half a surrogate pair, and bytes that are not UTF-8, read as U+FFFD, as
	// encoding/json does. Otherwise they are faults.
	Loose bool

	first bool // after an opening bracket, where no comma is due
	spell bool // the canonical form is being made: see respell
	src   []byte
	pos   int
	depth int
	fault *Error
	out   []byte
	kept  int
}

// Scan makes a scanner of src, which must not change while it is read.
func Scan(src []byte) Scanner { return Scanner{src: src} }

// Peek returns the next byte that is not white space; 0 at the end.
func (s *Scanner) Peek() byte {
	if s.pos < len(s.src) {
		if c := s.src[s.pos]; c > ' ' {
			return c
		}
	}
	return s.space()
}

// comes reports whether c comes next. Unlike Peek it is small enough to be inlined.
func (s *Scanner) comes(c byte) bool {
	return s.pos < len(s.src) && s.src[s.pos] == c || s.space() == c
}

func (s *Scanner) space() byte {
	from := s.pos
	for s.pos < len(s.src) && isSpace(s.src[s.pos]) {
		s.pos++
	}
	if s.spell && s.pos > from {
		s.respell(from, nil)
	}
	if s.pos >= len(s.src) {
		return 0
	}
	return s.src[s.pos]
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// At is the offset of the next byte that is not white space.
func (s *Scanner) At() int {
	s.Peek()
	return s.pos
}

// Enter reads the bracket that begins an object or an array. They nest up to MaxDepth.
func (s *Scanner) Enter(bracket byte) {
	switch {
	case !s.comes(bracket):
		s.unexpected("'" + string(bracket) + "'")
	case s.depth == MaxDepth:
		s.fail(s.pos, "nested deeper than %d", MaxDepth)
	default:
		s.pos++
		s.depth++
		s.first = true
	}
}

// Next reports whether a member or an element follows. It reads the comma before it, or the
// bracket that ends the object or array.
func (s *Scanner) Next(bracket byte) bool {
	c, first := s.Peek(), s.first
	s.first = false
	switch {
	case c == bracket:
		s.pos++
		s.depth--
		return false
	case first:
		return s.fault == nil
	case c == ',':
		s.pos++
		return true
	}
	s.unexpected("',' or '" + string(bracket) + "'")
	return false
}

// Key reads a member's key and the colon, and returns the key's content.
func (s *Scanner) Key() []byte {
	if !s.comes('"') {
		s.unexpected("a key")
		return nil
	}
	key := s.text()
	if !s.comes(':') {
		s.unexpected("':'")
		return key
	}
	s.pos++
	return key
}

// Text reads a string and returns its content.
func (s *Scanner) Text() []byte {
	if !s.comes('"') {
		s.unexpected("a string")
		return nil
	}
	return s.text()
}

// Null reads null, if that comes next, and reports whether it did.
func (s *Scanner) Null() bool {
	if s.Peek() != 'n' {
		return false
	}
	s.word("null")
	return true
}

// Bool reads true or false.
func (s *Scanner) Bool() bool {
	switch s.Peek() {
	case 't':
		s.word("true")
		return s.fault == nil
	case 'f':
		s.word("false")
	default:
		s.unexpected("true or false")
	}
	return false
}

func (s *Scanner) word(w string) {
	if len(s.src)-s.pos < len(w) || string(s.src[s.pos:s.pos+len(w)]) != w {
		s.unexpected("a value")
		return
	}
	s.pos += len(w)
}

// Skip reads any value of a canonical text and returns its text without looking into it.
func (s *Scanner) Skip() []byte {
	from := s.At()
	switch s.Peek() {
	case '"':
		s.pos = stringEnd(s.src, from)
	case '{', '[':
		s.pos = bracketEnd(s.src, from)
	default:
		for s.pos < len(s.src) && s.src[s.pos] != ',' && s.src[s.pos] != '}' && s.src[s.pos] != ']' {
			s.pos++
		}
	}
	if s.pos == from {
		s.unexpected("a value")
	}
	return s.since(from)
}

// bracketEnd is the offset after the bracket that closes the one at pos.
func bracketEnd(src []byte, pos int) int {
	for depth := 0; pos < len(src); pos++ {
		switch src[pos] {
		case '"':
			pos = stringEnd(src, pos) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return pos + 1
			}
		}
	}
	return len(src)
}

// stringEnd is the offset after the quote that ends the string at pos.
func stringEnd(src []byte, pos int) int {
	for pos++; pos < len(src); pos++ {
		switch src[pos] {
		case '"':
			return pos + 1
		case '\\':
			pos++
		}
	}
	return len(src)
}

// since is the text from there to pos; nil after a fault.
func (s *Scanner) since(from int) []byte {
	if s.fault != nil {
		return nil
	}
	return s.src[from:s.pos:s.pos]
}

// End checks that nothing follows, and returns the first fault; nil: there was none.
func (s *Scanner) End() *Error {
	if s.Peek(); s.pos < len(s.src) {
		s.broken(s.pos, "more text behind the value")
	}
	if s.fault != nil {
		s.fault.Path = pathTo(s.src, s.fault.Offset)
	}
	return s.fault
}

// Fail makes what was read last a fault, for the given reason. It reports whether that is the
// first fault.
func (s *Scanner) Fail(reason string) bool {
	if s.fault != nil {
		return false
	}
	s.fault = &Error{Offset: s.pos, Reason: reason}
	s.pos = len(s.src)
	return true
}

func (s *Scanner) fail(offset int, format string, args ...any) {
	if s.Fail(fmt.Sprintf(format, args...)) {
		s.fault.Offset = offset
	}
}

// broken reports text that is no JSON.
func (s *Scanner) broken(offset int, format string, args ...any) {
	if s.fault == nil {
		s.fail(offset, format, args...)
		s.fault.Syntax = true
	}
}

// unexpected reports what is at pos, or the end of the text, as a fault.
func (s *Scanner) unexpected(want string) {
	if s.pos >= len(s.src) {
		s.broken(s.pos, "the text ends where %s should be", want)
		return
	}
	r, _ := utf8.DecodeRune(s.src[s.pos:])
	s.broken(s.pos, "%q where %s should be", r, want)
}
