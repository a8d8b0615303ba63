package canonical

import "encoding/json"

// Object reads src, one JSON object, into the members that it may have, each by its exact name. A
// *json.RawMessage gets the canonical form of any value; another pointer what encoding/json makes
// of it, and no null. A member that is not there leaves its own as it is.
//
// What has no one meaning is refused with an [*Error] that names the place: a member that is not
// among them, such as one in other letters, one that comes twice, a value of another type, more
// text behind the object, and what [Payload] refuses in a value.
func Object(src []byte, members map[string]any) error {
	s := Scan(src)
	seen := make(map[string]bool, len(members))
	for s.Enter('{'); s.Next('}'); {
		name := string(s.Key())
		to, known := members[name]
		switch {
		case s.fault != nil:
		case !known:
			s.Fail("there is no such member")
		case seen[name]:
			s.Fail("the member comes twice")
		}
		seen[name] = true
		s.into(to)
	}
	if f := s.End(); f != nil {
		return f
	}
	return nil
}

// into reads any value into a member of Object.
func (s *Scanner) into(to any) {
	at := s.At()
	form := s.Form()
	if s.fault != nil {
		return
	}
	if raw, any := to.(*json.RawMessage); any {
		*raw = form
		return
	}
	if kind := kindOf(form[0]); form[0] == 'n' || json.Unmarshal(form, to) != nil {
		s.fail(at, "it cannot be a JSON %s such as this", kind)
	}
}

// kindOf names the type of a value by its first byte.
func kindOf(c byte) string {
	switch c {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
