package canonical

import (
	"bytes"
	"strconv"
)

// Int reads an integer of 64 bits without point and exponent.
func (s *Scanner) Int() int64 {
	from := s.At()
	if from < len(s.src) && s.src[from] == '-' {
		s.pos++
	}
	s.whole()
	n, err := strconv.ParseInt(string(s.since(from)), 10, 64)
	if next := s.Peek(); err != nil || next == '.' || next|0x20 == 'e' {
		s.fail(from, "not an integer of 64 bits, without point and exponent")
	}
	return n
}

// number reads the number at pos and gives it its one spelling.
func (s *Scanner) number() {
	from := s.pos
	n := s.decimal()
	switch {
	case s.fault != nil || !s.spell:
		return
	case n.plain() && s.pos-from <= MaxZeros: // the common case
		return
	}
	if reason := n.reduce(); reason != "" {
		s.fail(from, "%s", reason)
		return
	}
	var buffer [64]byte
	if text := n.append(buffer[:0]); !bytes.Equal(text, s.src[from:s.pos]) {
		s.respell(from, text)
	}
}

// decimal is a number: as read it is (-)whole.fraction × 10^exponent; after reduce it is
// (-)digits × 10^exponent, without zeros at either end.
type decimal struct {
	negative bool
	powered  bool // an exponent was written
	whole    []byte
	fraction []byte
	digits   []byte
	exponent int
}

// plain reports whether a short number is canonical: no exponent, no zero at the end of the
// fraction, not -0.
func (n *decimal) plain() bool {
	if len(n.fraction) > 0 {
		return !n.powered && n.fraction[len(n.fraction)-1] != '0'
	}
	return !n.powered && (!n.negative || n.whole[0] != '0')
}

// decimal reads a number by the grammar of JSON.
func (s *Scanner) decimal() (n decimal) {
	if s.src[s.pos] == '-' {
		n.negative = true
		s.pos++
	}
	n.whole = s.whole()
	if s.pos < len(s.src) && s.src[s.pos] == '.' {
		s.pos++
		n.fraction = s.digits()
	}
	if s.pos < len(s.src) && s.src[s.pos]|0x20 == 'e' {
		s.pos++
		n.powered = true
		n.exponent = s.exponent()
	}
	return n
}

// whole reads the digits before the point.
func (s *Scanner) whole() []byte {
	text := s.digits()
	if len(text) > 1 && text[0] == '0' {
		s.broken(s.pos-len(text), "a number with a zero in front")
	}
	return text
}

// digits reads one digit or more.
func (s *Scanner) digits() []byte {
	from := s.pos
	for s.pos < len(s.src) && isDigit(s.src[s.pos]) {
		s.pos++
	}
	if s.pos == from {
		s.unexpected("a digit")
	}
	return s.since(from)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// exponentCap stands for every exponent that no number of digits in an input can bring back
// within the limits. Adding to it does not overflow.
const exponentCap = 1 << 40

func (s *Scanner) exponent() (n int) {
	negative := false
	if s.pos < len(s.src) && (s.src[s.pos] == '+' || s.src[s.pos] == '-') {
		negative = s.src[s.pos] == '-'
		s.pos++
	}
	for _, c := range s.digits() {
		n = min(n*10+int(c-'0'), exponentCap)
	}
	if negative {
		return -n
	}
	return n
}

// reduce brings the number to its digits and checks the limits. It returns the reason for a
// refusal, or "".
func (n *decimal) reduce() string {
	n.exponent -= len(n.fraction)
	switch {
	case len(n.fraction) == 0:
		n.digits = n.whole
	case len(n.whole) == 1 && n.whole[0] == '0':
		n.digits = n.fraction
	default: // whole and fraction lie beside each other but for the point
		n.digits = append(append(make([]byte, 0, len(n.whole)+len(n.fraction)), n.whole...), n.fraction...)
	}
	n.digits = bytes.TrimLeft(n.digits, "0")
	trimmed := bytes.TrimRight(n.digits, "0")
	n.exponent += len(n.digits) - len(trimmed)
	n.digits = trimmed
	if len(n.digits) == 0 {
		n.exponent = 0
		return ""
	}
	if len(n.digits) > MaxDigits {
		return "a number of more than " + strconv.Itoa(MaxDigits) + " digits"
	}
	if first := n.exponent + len(n.digits) - 1; first > MaxExponent || first < -MaxExponent {
		return "a number beyond 10^±" + strconv.Itoa(MaxExponent)
	}
	return ""
}

// append writes the one spelling of a reduced number.
func (n *decimal) append(dst []byte) []byte {
	if len(n.digits) == 0 {
		return append(dst, '0')
	}
	if n.negative {
		dst = append(dst, '-')
	}
	point := len(n.digits) + n.exponent // digits in front of the point
	switch {
	case n.exponent >= 0 && n.exponent <= MaxZeros:
		dst = append(dst, n.digits...)
		return zeros(dst, n.exponent)
	case n.exponent < 0 && point > 0:
		dst = append(dst, n.digits[:point]...)
		dst = append(dst, '.')
		return append(dst, n.digits[point:]...)
	case n.exponent < 0 && -point < MaxZeros:
		dst = append(dst, "0."...)
		dst = zeros(dst, -point)
		return append(dst, n.digits...)
	}
	dst = append(dst, n.digits[0])
	if len(n.digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, n.digits[1:]...)
	}
	dst = append(dst, 'e')
	return strconv.AppendInt(dst, int64(point-1), 10)
}

func zeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
