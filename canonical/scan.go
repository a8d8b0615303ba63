package canonical

import "fmt"

// fault is an error without its path, which is found only when it is asked for.
type fault struct {
	offset int
	reason string
}

// scanner walks src once. As long as everything read is canonical, nothing is
// written and positions in src are positions in the result; from the first
// difference on out holds the result.
type scanner struct {
	src    []byte
	pos    int
	out    []byte
	copied bool
	strict bool
	depth  int
}

// mark is the position in the result.
func (s *scanner) mark() int {
	if s.copied {
		return len(s.out)
	}
	return s.pos
}

// result is the canonical text so far.
func (s *scanner) result() []byte {
	if s.copied {
		return s.out
	}
	return s.src[:s.pos]
}

// diverge starts the copy: the result is src up to end and goes on in out.
func (s *scanner) diverge(end int) {
	if s.copied {
		return
	}
	s.copied = true
	s.out = append(make([]byte, 0, len(s.src)+64), s.src[:end]...)
}

// keep takes src[from:pos] into the result as it is.
func (s *scanner) keep(from int) {
	if s.copied {
		s.out = append(s.out, s.src[from:s.pos]...)
	}
}

func (s *scanner) fail(offset int, format string, args ...any) *fault {
	return &fault{offset: offset, reason: fmt.Sprintf(format, args...)}
}

// unexpected names the byte at pos, or the end.
func (s *scanner) unexpected(want string) *fault {
	if s.pos >= len(s.src) {
		return s.fail(s.pos, "the text ends where %s should be", want)
	}
	return s.fail(s.pos, "%q where %s should be", rune(s.src[s.pos]), want)
}

func (s *scanner) space() {
	from := s.pos
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
			continue
		}
		break
	}
	if s.pos > from {
		s.diverge(from)
	}
}

func (s *scanner) document() *fault {
	if f := s.value(); f != nil {
		return f
	}
	s.space()
	if s.pos < len(s.src) {
		return s.fail(s.pos, "more text behind the value")
	}
	return nil
}

func (s *scanner) value() *fault {
	s.space()
	if s.pos >= len(s.src) {
		return s.unexpected("a value")
	}
	switch c := s.src[s.pos]; {
	case c == '{':
		return s.nested((*scanner).object)
	case c == '[':
		return s.nested((*scanner).array)
	case c == '"':
		return s.str()
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.unexpected("a value")
}

func (s *scanner) word(w string) *fault {
	if len(s.src)-s.pos < len(w) || string(s.src[s.pos:s.pos+len(w)]) != w {
		return s.unexpected("a value")
	}
	from := s.pos
	s.pos += len(w)
	s.keep(from)
	return nil
}

func (s *scanner) nested(read func(*scanner) *fault) *fault {
	if s.depth == MaxDepth {
		return s.fail(s.pos, "nested deeper than %d", MaxDepth)
	}
	s.depth++
	f := read(s)
	s.depth--
	return f
}

// punct takes one byte of punctuation.
func (s *scanner) punct() {
	s.pos++
	s.keep(s.pos - 1)
}

func (s *scanner) array() *fault {
	s.punct()
	s.space()
	if s.pos < len(s.src) && s.src[s.pos] == ']' {
		s.punct()
		return nil
	}
	for {
		if f := s.value(); f != nil {
			return f
		}
		s.space()
		if s.pos >= len(s.src) || (s.src[s.pos] != ',' && s.src[s.pos] != ']') {
			return s.unexpected("',' or ']'")
		}
		end := s.src[s.pos] == ']'
		s.punct()
		if end {
			return nil
		}
	}
}

func (s *scanner) object() *fault {
	start, from := s.pos, s.mark()
	s.punct()
	s.space()
	if s.pos < len(s.src) && s.src[s.pos] == '}' {
		s.punct()
		return nil
	}
	sorted, first, prevFrom, prevTo := true, true, 0, 0
	for {
		s.space()
		keyFrom := s.mark()
		if f := s.key(); f != nil {
			return f
		}
		keyTo := s.mark()
		if text := s.result(); sorted && !first {
			sorted = compareKeys(text[prevFrom:prevTo], text[keyFrom:keyTo]) < 0
		}
		first, prevFrom, prevTo = false, keyFrom, keyTo
		s.space()
		if s.pos >= len(s.src) || s.src[s.pos] != ':' {
			return s.unexpected("':'")
		}
		s.punct()
		if f := s.value(); f != nil {
			return f
		}
		s.space()
		if s.pos >= len(s.src) || (s.src[s.pos] != ',' && s.src[s.pos] != '}') {
			return s.unexpected("',' or '}'")
		}
		end := s.src[s.pos] == '}'
		s.punct()
		if !end {
			continue
		}
		if sorted {
			return nil
		}
		return s.sortObject(start, from)
	}
}

func (s *scanner) key() *fault {
	if s.pos >= len(s.src) || s.src[s.pos] != '"' {
		return s.unexpected("a key")
	}
	from := s.pos
	if f := s.str(); f != nil {
		return f
	}
	if !s.strict {
		return nil
	}
	if s.pos-from-2 > MaxStrictKey {
		return s.fail(from, "a key of more than %d bytes", MaxStrictKey)
	}
	for _, c := range s.src[from+1 : s.pos-1] {
		if c < ' ' || c > '~' || c == '\\' {
			return s.fail(from, "a key of other than plain ASCII characters")
		}
	}
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
