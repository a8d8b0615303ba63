package canonical

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendInt appends the canonical spelling of n, which is in the payload
// profile for every int64.
func AppendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// AppendString appends s as a canonical JSON string. It escapes the quote, the
// backslash and control characters only. It does not refuse: s must be valid
// UTF-8 without U+0000, otherwise the text that is appended is one that
// [Payload] refuses.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			dst = append(dst, s[from:i]...)
			dst = appendEscape(dst, c)
			from = i + 1
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// appendEscape writes the one escape of a byte that needs one.
func appendEscape(dst []byte, c byte) []byte {
	if short := shortEscape(c); short != 0 {
		return append(dst, '\\', short)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

func shortEscape(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\b':
		return 'b'
	case '\t':
		return 't'
	case '\n':
		return 'n'
	case '\f':
		return 'f'
	case '\r':
		return 'r'
	}
	return 0
}

// str reads a string and writes it with the fewest escapes.
func (s *scanner) str() *fault {
	start := s.pos
	from := s.pos // what is not yet in the result
	s.pos++
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == '"':
			s.pos++
			s.keep(from)
			return nil
		case c == '\\':
			next, f := s.escape(from)
			if f != nil {
				return f
			}
			from = next
		case c < ' ':
			return s.fail(s.pos, "control character U+%04X must be escaped", c)
		case c < utf8.RuneSelf:
			s.pos++
		default:
			_, size := utf8.DecodeRune(s.src[s.pos:])
			if size == 1 {
				return s.fail(s.pos, "invalid UTF-8")
			}
			s.pos += size
		}
	}
	return s.fail(start, "a string without its end")
}

// escape reads the escape at pos and writes its one spelling; from is the start
// of what is not yet in the result, its new value is returned.
func (s *scanner) escape(from int) (int, *fault) {
	at := s.pos
	r, f := s.readEscape()
	if f != nil {
		return 0, f
	}
	var buffer [8]byte
	var spelled []byte
	if r < ' ' || r == '"' || r == '\\' {
		spelled = appendEscape(buffer[:0], byte(r))
	} else {
		spelled = utf8.AppendRune(buffer[:0], r)
	}
	if string(spelled) == string(s.src[at:s.pos]) {
		return from, nil
	}
	if s.copied {
		s.out = append(s.out, s.src[from:at]...)
	}
	s.diverge(at)
	s.out = append(s.out, spelled...)
	return s.pos, nil
}

// readEscape takes the escape at pos and returns what it stands for.
func (s *scanner) readEscape() (rune, *fault) {
	at := s.pos
	if at+1 >= len(s.src) {
		return 0, s.fail(at, "a string without its end")
	}
	s.pos += 2
	switch c := s.src[at+1]; c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 't':
		return '\t', nil
	case 'n':
		return '\n', nil
	case 'f':
		return '\f', nil
	case 'r':
		return '\r', nil
	case 'u':
	default:
		return 0, s.fail(at, "an escape that JSON does not know")
	}
	r, ok := hex4(s.src, s.pos)
	switch {
	case !ok:
		return 0, s.fail(at, "\\u without four hexadecimal digits")
	case r == 0:
		return 0, s.fail(at, "U+0000 is not allowed in a string")
	}
	s.pos += 4
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if low, ok := lowSurrogate(s.src, s.pos); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			s.pos += 6
			return pair, nil
		}
	}
	return 0, s.fail(at, "half a surrogate pair")
}

func lowSurrogate(src []byte, pos int) (rune, bool) {
	if pos+1 >= len(src) || src[pos] != '\\' || src[pos+1] != 'u' {
		return 0, false
	}
	return hex4(src, pos+2)
}

func hex4(src []byte, pos int) (rune, bool) {
	if pos+4 > len(src) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(src[pos:pos+4]), 16, 32)
	return rune(n), err == nil
}

// unescape returns what the inside of a valid JSON string says; without an
// escape that is text itself.
func unescape(text []byte) []byte {
	s := scanner{src: text}
	var plain []byte
	from := 0
	for s.pos < len(text) {
		if text[s.pos] != '\\' {
			s.pos++
			continue
		}
		plain = append(plain, text[from:s.pos]...)
		r, f := s.readEscape()
		if f != nil { // text was read before; an escape cannot become wrong
			panic("canonical: " + f.reason)
		}
		plain = utf8.AppendRune(plain, r)
		from = s.pos
	}
	if from == 0 {
		return text
	}
	return append(plain, text[from:]...)
}
