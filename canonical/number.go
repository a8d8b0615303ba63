package canonical

import (
	"bytes"
	"strconv"
)

// number reads a JSON number and writes its one spelling.
func (s *scanner) number() *fault {
	from := s.pos
	n, f := s.readNumber()
	if f != nil {
		return f
	}
	if s.strict {
		return s.strictNumber(from)
	}
	if n.plain() && s.pos-from <= MaxZeros { // the common case needs no second look
		s.keep(from)
		return nil
	}
	if reason := n.reduce(); reason != "" {
		return s.fail(from, "%s", reason)
	}
	var buffer [64]byte
	text := n.append(buffer[:0])
	if bytes.Equal(text, s.src[from:s.pos]) {
		s.keep(from)
		return nil
	}
	s.diverge(from)
	s.out = append(s.out, text...)
	return nil
}

func (s *scanner) strictNumber(from int) *fault {
	text := s.src[from:s.pos]
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err != nil || n > MaxStrictInt || n < -MaxStrictInt:
		return s.fail(from, "not an integer of at most ±(2^53−1)")
	case n == 0 && len(text) > 1:
		return s.fail(from, "-0 is not an integer's spelling")
	}
	s.keep(from)
	return nil
}

// decimal is a number as it was read: (-)whole.fraction × 10^exponent; after
// reduce: (-)digits × 10^exponent, with no zero at either end.
type decimal struct {
	negative bool
	powered  bool // an exponent was written
	whole    []byte
	fraction []byte
	digits   []byte
	exponent int
}

// plain says that a short number is spelled canonically: no exponent, no zero
// at the end of a fraction, not -0.
func (n *decimal) plain() bool {
	if len(n.fraction) > 0 {
		return !n.powered && n.fraction[len(n.fraction)-1] != '0'
	}
	return !n.powered && (!n.negative || n.whole[0] != '0')
}

// readNumber takes what the grammar of JSON allows.
func (s *scanner) readNumber() (n decimal, f *fault) {
	if s.src[s.pos] == '-' {
		n.negative = true
		s.pos++
	}
	n.whole = s.digits()
	switch {
	case len(n.whole) == 0:
		return n, s.unexpected("a digit")
	case len(n.whole) > 1 && n.whole[0] == '0':
		return n, s.fail(s.pos-len(n.whole), "a number with a zero in front")
	}
	if s.pos < len(s.src) && s.src[s.pos] == '.' {
		s.pos++
		if n.fraction = s.digits(); len(n.fraction) == 0 {
			return n, s.unexpected("a digit")
		}
	}
	if s.pos < len(s.src) && s.src[s.pos]|0x20 == 'e' {
		s.pos++
		n.powered = true
		if f := s.exponent(&n); f != nil {
			return n, f
		}
	}
	return n, nil
}

func (s *scanner) digits() []byte {
	from := s.pos
	for s.pos < len(s.src) && isDigit(s.src[s.pos]) {
		s.pos++
	}
	return s.src[from:s.pos]
}

// exponentCap stands for every exponent that no number of digits within an
// input brings back into the limits; adding to it does not overflow.
const exponentCap = 1 << 40

func (s *scanner) exponent(n *decimal) *fault {
	negative := false
	if s.pos < len(s.src) && (s.src[s.pos] == '+' || s.src[s.pos] == '-') {
		negative = s.src[s.pos] == '-'
		s.pos++
	}
	text := s.digits()
	if len(text) == 0 {
		return s.unexpected("a digit")
	}
	for _, c := range text {
		n.exponent = min(n.exponent*10+int(c-'0'), exponentCap)
	}
	if negative {
		n.exponent = -n.exponent
	}
	return nil
}

// reduce brings the number to its digits and checks the limits; it returns the
// reason for a refusal.
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
