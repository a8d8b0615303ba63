package expr

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// fromJSON makes a value of canonical JSON. Objects and arrays are decoded one level at a
// time, on demand; parts that are not read are copied unchanged.
func (s *Step) fromJSON(text []byte) ref.Val {
	switch text[0] {
	case '{':
		s.spend(1)
		return &object{step: s, text: text}
	case '[':
		s.spend(1)
		return &array{step: s, text: text}
	case '"':
		perUnit := textPerUnit
		if bytes.IndexByte(text, '\\') >= 0 {
			perUnit = shownPerUnit
		}
		s.spendFor(len(text), perUnit)
		return types.String(canonical.Unquote(text))
	case 't':
		return types.True
	case 'f':
		return types.False
	case 'n':
		return types.NullValue
	}
	return s.parseNumber(string(text))
}

// object is a JSON object, or one that an expression makes, which has no text. Its keys are
// sorted, as in canonical JSON.
type object struct {
	step   *Step
	text   []byte
	opened bool
	keys   []string
	texts  [][]byte
	values []ref.Val // nil until one is read
}

var _ traits.Mapper = (*object)(nil)

func (o *object) open() {
	if o.opened || o.text == nil {
		return
	}
	o.step.spendFor(len(o.text), readPerUnit)
	for key, value := range canonical.Members(o.text) {
		o.step.spend(1)
		o.keys = append(o.keys, canonical.Unquote(key))
		o.texts = append(o.texts, value)
	}
	o.values, o.opened = make([]ref.Val, len(o.keys)), true
}

// index is the place of a key.
func (o *object) index(key string) (int, bool) {
	o.open()
	o.step.spendFor(len(key), samePerUnit)
	return slices.BinarySearch(o.keys, key)
}

// put adds a member to an object that has no text; the last one of a key stays.
func (o *object) put(key string, value ref.Val) {
	i, ok := slices.BinarySearch(o.keys, key)
	if ok {
		o.values[i] = value
		return
	}
	o.keys, o.values = slices.Insert(o.keys, i, key), slices.Insert(o.values, i, value)
}

// at is the i-th value.
func (o *object) at(i int) ref.Val {
	if o.values[i] == nil {
		o.values[i] = o.step.fromJSON(o.texts[i])
	}
	return o.values[i]
}

// Find looks a key up. A JSON object has only strings as keys.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	i, ok := o.index(string(name))
	if !ok {
		return nil, false
	}
	return o.at(i), true
}

func (o *object) Get(key ref.Val) ref.Val {
	value, ok := o.Find(key)
	if !ok {
		return types.NewErr("no such key")
	}
	return value
}

func (o *object) Contains(key ref.Val) ref.Val {
	name, ok := key.(types.String)
	if ok {
		_, ok = o.index(string(name))
	}
	return types.Bool(ok)
}

func (o *object) Iterator() traits.Iterator {
	o.open()
	return &cursor{size: len(o.keys), at: func(i int) ref.Val { return types.String(o.keys[i]) }}
}

func (o *object) Size() ref.Val {
	o.open()
	return types.Int(len(o.keys))
}

func (o *object) Equal(other ref.Val) ref.Val { return types.Bool(o.step.equal(o, other)) }

func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("an object is not a %v", t)
}

func (o *object) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("an object cannot be made a %s", t.TypeName())
}

func (o *object) Type() ref.Type { return types.MapType }

func (o *object) Value() any { return "an object" }

// array is a JSON array.
type array struct {
	step   *Step
	text   []byte
	opened bool
	ends   []int     // where each element ends in text; a comma is between two
	values []ref.Val // nil until one is read
}

var _ traits.Lister = (*array)(nil)

func (a *array) open() {
	if a.opened {
		return
	}
	a.step.spendFor(len(a.text), readPerUnit)
	end, ends := len("["), []int(nil)
	for element := range canonical.Elements(a.text) {
		a.step.spend(1)
		end += len(element)
		ends = append(ends, end)
		end += len(",")
	}
	a.ends, a.values, a.opened = ends, make([]ref.Val, len(ends)), true
}

// at is the i-th element of an open array.
func (a *array) at(i int) ref.Val {
	if a.values[i] == nil {
		start := len("[")
		if i > 0 {
			start = a.ends[i-1] + len(",")
		}
		a.values[i] = a.step.fromJSON(a.text[start:a.ends[i]])
	}
	return a.values[i]
}

func (a *array) Get(index ref.Val) ref.Val {
	a.open()
	i, ok := index.(types.Int)
	switch {
	case !ok:
		return types.NewErr("a list is not indexed by %s", typeName(index))
	case i < 0 || int64(i) >= int64(len(a.values)):
		return types.NewErr("index out of bounds: %d", int64(i))
	}
	return a.at(int(i))
}

func (a *array) Contains(value ref.Val) ref.Val { return types.Bool(a.step.in(value, a)) }

func (a *array) Add(other ref.Val) ref.Val { return a.step.add(a, other) }

func (a *array) Iterator() traits.Iterator {
	a.open()
	return &cursor{size: len(a.values), at: a.at}
}

func (a *array) Size() ref.Val {
	a.open()
	return types.Int(len(a.values))
}

func (a *array) Equal(other ref.Val) ref.Val { return types.Bool(a.step.equal(a, other)) }

func (a *array) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a list is not a %v", t)
}

func (a *array) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.ListType:
		return a
	case types.TypeType:
		return types.ListType
	}
	return types.NewErr("a list cannot be made a %s", t.TypeName())
}

func (a *array) Type() ref.Type { return types.ListType }

func (a *array) Value() any { return "a list" }

// cursor iterates over an indexed collection.
type cursor struct {
	types.Null // CEL requires an iterator to be a value; it is never used as one
	size, next int
	at         func(int) ref.Val
}

func (c *cursor) HasNext() ref.Val { return types.Bool(c.next < c.size) }

func (c *cursor) Next() ref.Val {
	c.next++
	return c.at(c.next - 1)
}

// elements are the values of a list, none of which is an error. The caller must not change them.
func elements(list traits.Lister) []ref.Val {
	switch l := list.(type) {
	case *array:
		l.open()
		for i := range l.values {
			l.at(i)
		}
		return l.values
	default:
		values, _ := l.Value().([]ref.Val) // of CEL's lists, which only expressions make here
		return values
	}
}

// element is list.Get without a value for the index.
func element(list traits.Lister, i int) ref.Val {
	if l, ok := list.(*array); ok {
		l.open()
		return l.at(i)
	}
	return list.Get(types.Int(i))
}
