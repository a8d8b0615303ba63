package canonical

import (
	"encoding/json"
	"fmt"
)

// Limits of both profiles. Beyond them a value is refused, never cut.
const (
	// MaxDepth is how deep arrays and objects may be nested.
	MaxDepth = 200
	// MaxDigits is the number of significant digits of a number.
	MaxDigits = 1000
	// MaxExponent bounds the power of ten of a number's first digit: the magnitude is below
	// 10^(MaxExponent+1) and, unless it is 0, at least 10^-MaxExponent.
	MaxExponent = 1000
	// MaxZeros is how many zeros are written just to place the decimal point (100, 0.001); a
	// number that needs more gets an exponent. So every int64 is written without one.
	MaxZeros = 20
	// MaxInt is the largest magnitude of an integer in Quipu's own fields, 2^53−1: every JSON
	// reader represents it exactly.
	MaxInt = 1<<53 - 1
)

// Error says why a text has no canonical form, and where.
type Error struct {
	// Offset is the byte of the input at which the reason was found.
	Offset int
	// Path leads to the value at Offset: "$", "$.lines[2].amount". A key that is no identifier
	// is quoted in brackets.
	Path string
	// Reason is the rule that was broken, with the limit if there is one.
	Reason string
	// Syntax says that the text is no JSON at all.
	Syntax bool
}

// Error gives path, offset and reason.
func (e *Error) Error() string {
	kind := "not canonical JSON"
	if e.Syntax {
		kind = "not JSON"
	}
	return fmt.Sprintf("%s: %s (byte %d): %s", kind, e.Path, e.Offset, e.Reason)
}

// Payload returns the canonical form of user data (rules 2.2, profile payload). It may return
// src itself if that is canonical; the caller must change neither afterwards.
// Payload(Payload(x)) equals Payload(x). An error is an *Error.
func Payload(src []byte) ([]byte, error) {
	s := Scanner{src: src}
	form := s.Form()
	if f := s.End(); f != nil {
		return nil, f
	}
	return form, nil
}

// Marshal returns the canonical form of what encoding/json makes of a value. It takes json.RawMessage
// as it is, so that an error names the place of its fault.
func Marshal(v any) ([]byte, error) {
	raw, ok := v.(json.RawMessage)
	if !ok || raw == nil {
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	return Payload(raw)
}
