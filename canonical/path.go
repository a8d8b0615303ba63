package canonical

import (
	"bytes"
	"strconv"
)

// step is one array or object on the way to an offset.
type step struct {
	object bool
	index  int
	key    []byte
	wants  bool // the next string is a key
}

// pathTo walks src, which is valid up to offset, and names the place. It runs
// only when there is an error to report.
func pathTo(src []byte, offset int) string {
	var steps []step
	for pos := 0; pos < offset && pos < len(src); pos++ {
		top := len(steps) - 1
		switch src[pos] {
		case '{':
			steps = append(steps, step{object: true, wants: true})
		case '[':
			steps = append(steps, step{})
		case '}', ']':
			steps = steps[:max(top, 0)]
		case ',':
			if top >= 0 {
				steps[top].index++
				steps[top].key, steps[top].wants = nil, steps[top].object
			}
		case '"':
			end, ok := stringEnd(src, pos)
			if !ok || end > offset {
				return renderPath(steps)
			}
			if top >= 0 && steps[top].wants {
				steps[top].key, steps[top].wants = decodeKey(src[pos:end]), false
			}
			pos = end - 1
		}
	}
	return renderPath(steps)
}

// stringEnd is skipString for text that may not have an end.
func stringEnd(src []byte, pos int) (int, bool) {
	for pos++; pos < len(src); pos++ {
		switch src[pos] {
		case '"':
			return pos + 1, true
		case '\\':
			pos++
		}
	}
	return 0, false
}

func renderPath(steps []step) string {
	path := []byte("$")
	for _, s := range steps {
		switch {
		case !s.object:
			path = append(path, '[')
			path = strconv.AppendInt(path, int64(s.index), 10)
			path = append(path, ']')
		case s.key == nil:
		case plainKey(s.key):
			path = append(path, '.')
			path = append(path, s.key...)
		default:
			path = append(path, '[')
			path = strconv.AppendQuote(path, string(s.key))
			path = append(path, ']')
		}
	}
	return string(path)
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

// secondKey finds where the object at start has key for the second time.
func secondKey(src []byte, start int, key []byte) int {
	depth, seen, wants := 0, false, false
	for pos := start; pos < len(src); pos++ {
		switch src[pos] {
		case '{', '[':
			depth++
			wants = depth == 1
		case '}', ']':
			depth--
		case ',':
			wants = depth == 1
		case '"':
			end := skipString(src, pos)
			if wants && depth == 1 && bytes.Equal(decodeKey(src[pos:end]), key) {
				if seen {
					return pos
				}
				seen = true
			}
			wants = wants && depth != 1
			pos = end - 1
		}
	}
	return start
}
