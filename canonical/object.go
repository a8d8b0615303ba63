package canonical

import (
	"bytes"
	"slices"
)

// member is one member of an object in canonical text.
type member struct {
	key  []byte // between its quotes, decoded
	text []byte // "key":value
}

// sortObject puts the members of the object that the result ends with, which
// starts at from, in the order of their keys. start is the object's place in
// src, for the error about a key that comes twice.
func (s *scanner) sortObject(start, from int) *fault {
	s.diverge(s.pos)
	members := membersOf(s.out[from:])
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	for i := 1; i < len(members); i++ {
		if bytes.Equal(members[i-1].key, members[i].key) {
			return s.fail(secondKey(s.src, start, members[i].key), "key %q comes twice", members[i].key)
		}
	}
	sorted := make([]byte, 0, len(s.out)-from)
	for i, m := range members {
		if i > 0 {
			sorted = append(sorted, ',')
		}
		sorted = append(sorted, m.text...)
	}
	copy(s.out[from+1:], sorted)
	return nil
}

// membersOf cuts a canonical object into its members.
func membersOf(object []byte) []member {
	var members []member
	for key, value := range Members(object) {
		members = append(members, member{key: decodeKey(key), text: key[:len(key)+1+len(value)]})
	}
	return members
}

// compareKeys orders two canonical key texts (with quotes) by the bytes of
// what they say.
func compareKeys(a, b []byte) int {
	a, b = a[1:len(a)-1], b[1:len(b)-1]
	if bytes.IndexByte(a, '\\') >= 0 || bytes.IndexByte(b, '\\') >= 0 {
		return bytes.Compare(unescape(a), unescape(b))
	}
	return bytes.Compare(a, b)
}

func decodeKey(text []byte) []byte { return unescape(text[1 : len(text)-1]) }

// skipString returns the position behind the string at pos of valid JSON.
func skipString(text []byte, pos int) int {
	for pos++; text[pos] != '"'; pos++ {
		if text[pos] == '\\' {
			pos++
		}
	}
	return pos + 1
}

// skipValue returns the position behind the value at pos of canonical JSON.
func skipValue(text []byte, pos int) int {
	for depth := 0; pos < len(text); pos++ {
		switch text[pos] {
		case '"':
			pos = skipString(text, pos) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return pos
			}
			depth--
		case ',':
			if depth == 0 {
				return pos
			}
		}
	}
	return pos
}
