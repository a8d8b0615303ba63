package canonical

import (
	"bytes"
	"iter"
)

// Unquote returns the content of a canonical JSON string. text, with its quotes, must come from
// this package; otherwise the result is undefined.
func Unquote(text []byte) string { return string(says(text)) }

// says is the content of a string that was read before.
func says(text []byte) []byte {
	inside := text[1 : len(text)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside
	}
	return unescape(inside)
}

// Members yields the keys and values of a canonical object, in order, as parts of object; a key
// has its quotes. object must come from this package. Nothing is decoded, so that a reader of
// one member does not pay for the others.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		s := Scan(object)
		for s.Enter('{'); s.Next('}'); {
			from := s.pos
			s.pos = stringEnd(object, from)
			key := object[from:s.pos]
			s.pos++ // the colon
			if !yield(key, s.Skip()) {
				return
			}
		}
	}
}

// Elements yields the elements of a canonical array, as parts of array, which must come from
// this package.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := Scan(array)
		for s.Enter('['); s.Next(']'); {
			if !yield(s.Skip()) {
				return
			}
		}
	}
}
