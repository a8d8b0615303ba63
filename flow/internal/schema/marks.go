package schema

// marks says which members or items of a value were evaluated, for unevaluatedProperties and
// unevaluatedItems. A nil *marks is for callers that do not need them.
type marks struct {
	all  bool
	few  uint64
	many []uint64 // from the 65th on
}

func newMarks(count uint32) *marks {
	m := &marks{}
	if count > 64 {
		m.many = make([]uint64, (count-1)/64)
	}
	return m
}

// words is the size of the marks of so many members or items.
func words(count uint32) int64 { return int64(count)/64 + 1 }

func (m *marks) set(i uint32) {
	switch {
	case m == nil:
	case i < 64:
		m.few |= 1 << i
	default:
		m.many[i/64-1] |= 1 << (i % 64)
	}
}

func (m *marks) has(i uint32) bool {
	switch {
	case m.all:
		return true
	case i < 64:
		return m.few&(1<<i) != 0
	}
	return m.many[i/64-1]&(1<<(i%64)) != 0
}

// setAll says that everything was evaluated.
func (m *marks) setAll() {
	if m != nil {
		m.all = true
	}
}

func (m *marks) merge(o *marks) {
	m.all = m.all || o.all
	if m.all {
		return
	}
	m.few |= o.few
	for i, word := range o.many {
		m.many[i] |= word
	}
}
