package canonical

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendInt appends n in canonical spelling; the payload profile has one for every int64.
func AppendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// AppendString appends s as a canonical JSON string. It escapes only the quote, the backslash
// and control characters. It refuses nothing: s must be valid UTF-8 without U+0000, otherwise
// [Payload] refuses the appended text.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		if c := s[i]; !plain[c] && (c < ' ' || c == '"' || c == '\\') {
			dst = appendEscape(append(dst, s[from:i]...), c)
			from = i + 1
		}
	}
	return append(append(dst, s[from:]...), '"')
}

// escaped are the characters that have a short escape; shorts are their letters after the
// backslash.
const (
	escaped = "\"\\/\b\f\n\r\t"
	shorts  = `"\/bfnrt`
)

// appendEscape writes the one escape of a byte that needs one; a slash does not.
func appendEscape(dst []byte, c byte) []byte {
	if i := strings.IndexByte(escaped, c); i >= 0 {
		return append(dst, '\\', shorts[i])
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// plain are the characters that need no look: printable ASCII except quote and backslash.
var plain = func() (is [256]bool) {
	for c := ' '; c <= '~'; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// text reads the string at pos and returns its content.
func (s *Scanner) text() []byte {
	src, from := s.src, s.pos+1
	i := from
	for i < len(src) && plain[src[i]] {
		i++
	}
	if i < len(src) && src[i] == '"' { // the common case
		s.pos = i + 1
		return src[from:i:i]
	}
	asIs := s.str()
	switch {
	case s.fault != nil:
		return nil
	case asIs:
		return src[from : s.pos-1 : s.pos-1]
	}
	return unescape(src[from : s.pos-1])
}

// str reads the string at pos. It reports whether its content is spelled as it is.
func (s *Scanner) str() bool {
	src, i, asIs := s.src, s.pos+1, true
	for i < len(src) {
		switch c := src[i]; {
		case plain[c]:
			i++
		case c == '"':
			s.pos = i + 1
			return asIs
		case c == '\\':
			start := s.pos
			s.pos, asIs = i, false
			r := s.escape()
			if s.fault != nil {
				return false
			}
			if s.spell {
				s.respellEscape(i, r)
			}
			i, s.pos = s.pos, start
		case c < ' ':
			s.broken(i, "control character U+%04X must be escaped", c)
			return false
		case c < utf8.RuneSelf:
			i++
		default:
			_, size := utf8.DecodeRune(src[i:])
			if size == 1 && !s.Loose {
				s.broken(i, "invalid UTF-8")
				return false
			}
			asIs = asIs && size > 1
			i += size
		}
	}
	s.broken(s.pos, "a string without its end")
	return false
}

// respellEscape gives the escape between from and pos its one spelling.
func (s *Scanner) respellEscape(from int, r rune) {
	var buffer [8]byte
	var spelled []byte
	if r < ' ' || r == '"' || r == '\\' {
		spelled = appendEscape(buffer[:0], byte(r))
	} else {
		spelled = utf8.AppendRune(buffer[:0], r)
	}
	if string(spelled) != string(s.src[from:s.pos]) {
		s.respell(from, spelled)
	}
}

// escape reads the escape at pos and returns the character.
func (s *Scanner) escape() rune {
	at := s.pos
	if at+1 >= len(s.src) {
		s.broken(at, "a string without its end")
		return 0
	}
	s.pos += 2
	c := s.src[at+1]
	if i := strings.IndexByte(shorts, c); i >= 0 {
		return rune(escaped[i])
	}
	if c != 'u' {
		s.broken(at, "an escape that JSON does not know")
		return 0
	}
	r, ok := hex4(s.src, s.pos)
	switch {
	case !ok:
		s.broken(at, "\\u without four hexadecimal digits")
		return 0
	case r == 0:
		s.fail(at, "U+0000 is not allowed in a string")
		return 0
	}
	s.pos += 4
	if !utf16.IsSurrogate(r) {
		return r
	}
	if low, ok := lowSurrogate(s.src, s.pos); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			s.pos += 6
			return pair
		}
	}
	if !s.Loose {
		s.fail(at, "half a surrogate pair")
	}
	return utf8.RuneError
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

// unescape returns the content of a string, without its quotes, that was read before.
func unescape(inside []byte) []byte {
	s := Scanner{src: inside, Loose: true}
	said := make([]byte, 0, len(inside))
	for s.pos < len(inside) {
		r, size := utf8.DecodeRune(inside[s.pos:])
		if r == '\\' {
			r = s.escape()
		} else {
			s.pos += size
		}
		said = utf8.AppendRune(said, r)
	}
	return said
}
