package canonical

import "strconv"

// pathTo names the place of a fault. It reads src again up to there, and is called only if
// there is a fault to report.
func pathTo(src []byte, offset int) string {
	s := Scanner{src: src[:offset], Loose: true}
	return "$" + s.path()
}

// path reads a value. If the text breaks off inside the value, path returns the way to that
// end.
func (s *Scanner) path() (way string) {
	switch s.Peek() {
	case '{':
		var key []byte
		for s.Enter('{'); s.Next('}'); {
			key = s.Key()
			way = s.path()
		}
		if key != nil {
			way = stepTo(key) + way
		}
	case '[':
		i := -1
		for s.Enter('['); s.Next(']'); {
			i++
			way = s.path()
		}
		if i >= 0 {
			way = "[" + strconv.Itoa(i) + "]" + way
		}
	default:
		s.value()
	}
	if s.fault == nil {
		return ""
	}
	return way
}

func stepTo(key []byte) string {
	if plainKey(key) {
		return "." + string(key)
	}
	return "[" + strconv.Quote(string(key)) + "]"
}

func plainKey(key []byte) bool {
	for i, c := range key {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || !isDigit(c)) {
			return false
		}
	}
	return len(key) > 0
}
