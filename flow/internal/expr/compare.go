package expr

import (
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// equal compares by value. It takes the place of the methods of CEL's lists, which compare what
// is in them at no price.
func (s *Step) equal(a, b ref.Val) bool {
	switch x := a.(type) {
	case types.String:
		y, ok := b.(types.String)
		return ok && s.same(len(x), len(y)) && x == y
	case types.Bytes:
		y, ok := b.(types.Bytes)
		return ok && s.same(len(x), len(y)) && string(x) == string(y)
	case *decimal:
		y, ok := b.(*decimal)
		if !ok {
			return false
		}
		order, _ := s.compareNumbers(x, y)
		return order == 0
	case *object:
		if y, ok := b.(*object); ok {
			return s.equalObjects(x, y)
		}
		return false
	case traits.Lister:
		if y, ok := b.(traits.Lister); ok {
			return s.equalLists(x, y)
		}
		return false
	}
	return types.Equal(a, b) == types.True
}

// same says that two texts have one length, and takes the price of comparing them if so.
func (s *Step) same(m, n int) bool {
	if m == n {
		s.spendFor(m, samePerUnit)
	}
	return m == n
}

func (s *Step) equalObjects(a, b *object) bool {
	if a.text != nil && b.text != nil { // canonical: one value, one text
		return s.same(len(a.text), len(b.text)) && string(a.text) == string(b.text)
	}
	a.open()
	b.open()
	if len(a.keys) != len(b.keys) {
		return false
	}
	for i := range a.keys {
		s.spend(1)
		if !s.same(len(a.keys[i]), len(b.keys[i])) || a.keys[i] != b.keys[i] || !s.equal(a.at(i), b.at(i)) {
			return false
		}
	}
	return true
}

func (s *Step) equalLists(a, b traits.Lister) bool {
	x, xIs := a.(*array)
	y, yIs := b.(*array)
	if xIs && yIs {
		return s.same(len(x.text), len(y.text)) && string(x.text) == string(y.text)
	}
	if sizeOf(a) != sizeOf(b) {
		return false
	}
	for i := range sizeOf(a) {
		s.spend(1)
		if !s.equal(element(a, i), element(b, i)) {
			return false
		}
	}
	return true
}

// contained is `in`.
func (s *Step) contained(v, in ref.Val) ref.Val {
	switch in := in.(type) {
	case *object:
		return in.Contains(v)
	case traits.Lister:
		return types.Bool(s.in(v, in))
	}
	return mismatch("in", v, in)
}

func (s *Step) in(v ref.Val, list traits.Lister) bool {
	for i := range sizeOf(list) {
		s.spend(1)
		if s.equal(v, element(list, i)) {
			return true
		}
	}
	return false
}

// size counts elements, keys, characters or bytes.
func (s *Step) size(v, _ ref.Val) ref.Val {
	switch v := v.(type) {
	case types.String:
		s.spendFor(len(v), readPerUnit)
		return types.Int(utf8.RuneCountInString(string(v)))
	case types.Bytes, *object, traits.Lister:
		return v.(traits.Sizer).Size()
	}
	return mismatch("size", v)
}

// within is a function that looks for a text in another.
func within(name string, holds func(text, part string) bool) operation {
	return func(s *Step, a, b ref.Val) ref.Val {
		text, isText := a.(types.String)
		part, isPart := b.(types.String)
		if !isText || !isPart {
			return mismatch(name, a, b)
		}
		s.spendFor(len(text)+len(part), readPerUnit)
		return types.Bool(holds(string(text), string(part)))
	}
}
