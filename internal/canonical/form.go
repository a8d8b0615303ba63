package canonical

import (
	"bytes"
	"slices"
)

// Form reads any value, with a nesting depth of its own, and returns its canonical form in the
// payload profile; nil after a fault. A value that is canonical is not copied: the form then
// lies in the input.
func (s *Scanner) Form() []byte {
	from, depth, loose := s.At(), s.depth, s.Loose
	s.spell, s.out, s.kept = true, nil, from
	s.depth, s.Loose = 0, false
	s.value()
	s.spell, s.depth, s.Loose = false, depth, loose
	if s.out == nil {
		return s.since(from)
	}
	s.respell(s.pos, nil)
	if s.fault != nil {
		return nil
	}
	return s.out
}

// respell makes the form contain text instead of the bytes of src between from and pos.
func (s *Scanner) respell(from int, text []byte) {
	if s.out == nil {
		s.out = make([]byte, 0, len(s.src)-s.kept+64)
	}
	s.out = append(append(s.out, s.src[s.kept:from]...), text...)
	s.kept = s.pos
}

func (s *Scanner) value() {
	switch c := s.Peek(); {
	case c == '{':
		s.object()
	case c == '[':
		for s.Enter('['); s.Next(']'); {
			s.value()
		}
	case c == '"':
		s.str()
	case c == '-' || isDigit(c):
		s.number()
	case c == 't':
		s.word("true")
	case c == 'f':
		s.word("false")
	case c == 'n':
		s.word("null")
	default:
		s.unexpected("a value")
	}
}

func (s *Scanner) object() {
	start, from := s.pos, len(s.out)+s.pos-s.kept
	sorted := true
	var last []byte
	for s.Enter('{'); s.Next('}'); {
		key := s.Key()
		sorted = sorted && (last == nil || bytes.Compare(last, key) < 0)
		last = key
		s.value()
	}
	if s.spell && !sorted && s.fault == nil {
		s.sort(start, from)
	}
}

// sort orders the members of the last object of the form by key. The object begins at from in
// out and at start in src.
func (s *Scanner) sort(start, from int) {
	type member struct{ key, text []byte }
	s.respell(s.pos, nil)
	object := s.out[from:]
	var members []member
	for key, value := range Members(object) {
		members = append(members, member{says(key), key[:len(key)+1+len(value)]})
	}
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	sorted := make([]byte, 0, len(object))
	for i, m := range members {
		if i > 0 && bytes.Equal(members[i-1].key, m.key) {
			s.fail(secondKey(s.src, start, m.key), "key %q comes twice", m.key)
			return
		}
		sorted = append(append(sorted, ','), m.text...)
	}
	copy(object[1:], sorted[1:])
}

// secondKey finds where the object at start has key for the second time.
func secondKey(src []byte, start int, key []byte) int {
	s := Scanner{src: src, pos: start}
	seen := false
	for s.Enter('{'); s.Next('}'); s.value() {
		at := s.At()
		if bytes.Equal(s.Key(), key) {
			if seen {
				return at
			}
			seen = true
		}
	}
	return start
}
