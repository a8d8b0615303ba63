package expr

import (
	"fmt"
	"reflect"
	"sort"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/quipu-journal/quipu/canonical"
)

// fromJSON makes a value of canonical JSON. Objects and arrays are decoded one level at a
// time, on demand; parts that are not read are copied unchanged.
func fromJSON(text []byte) ref.Val {
	switch text[0] {
	case '{':
		return &object{text: text}
	case '[':
		return &array{text: text}
	case '"':
		return types.String(canonical.Unquote(text))
	case 't':
		return types.True
	case 'f':
		return types.False
	case 'n':
		return types.NullValue
	}
	return parseNumber(string(text))
}

// object is a JSON object.
type object struct {
	text   []byte
	opened bool
	keys   []string // sorted, as in canonical JSON
	values [][]byte
}

var _ traits.Mapper = (*object)(nil)

func (o *object) open() {
	if o.opened {
		return
	}
	o.opened = true
	for key, value := range canonical.Members(o.text) {
		o.keys = append(o.keys, canonical.Unquote(key))
		o.values = append(o.values, value)
	}
}

// Find looks a key up. A JSON object has only strings as keys.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	o.open()
	i := sort.SearchStrings(o.keys, string(name))
	if i == len(o.keys) || o.keys[i] != string(name) {
		return nil, false
	}
	return fromJSON(o.values[i]), true
}

func (o *object) Get(key ref.Val) ref.Val {
	value, ok := o.Find(key)
	if !ok {
		return types.NewErr("no such key: %v", key.Value())
	}
	return value
}

func (o *object) Contains(key ref.Val) ref.Val {
	_, ok := o.Find(key)
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

func (o *object) Equal(other ref.Val) ref.Val {
	if same, ok := other.(*object); ok {
		return types.Bool(string(o.text) == string(same.text))
	}
	mapper, ok := other.(traits.Mapper)
	if !ok || mapper.Size().Equal(o.Size()) != types.True {
		return types.False
	}
	for i, key := range o.keys {
		value, found := mapper.Find(types.String(key))
		if !found || types.Equal(fromJSON(o.values[i]), value) != types.True {
			return types.False
		}
	}
	return types.True
}

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

func (o *object) Value() any { return string(o.text) }

// array is a JSON array.
type array struct {
	text     []byte
	opened   bool
	elements [][]byte
}

var _ traits.Lister = (*array)(nil)

func (a *array) open() {
	if a.opened {
		return
	}
	a.opened = true
	for element := range canonical.Elements(a.text) {
		a.elements = append(a.elements, element)
	}
}

// values decodes every element.
func (a *array) values() []ref.Val {
	a.open()
	values := make([]ref.Val, len(a.elements))
	for i, element := range a.elements {
		values[i] = fromJSON(element)
	}
	return values
}

func (a *array) Get(index ref.Val) ref.Val {
	a.open()
	i, ok := index.(types.Int)
	switch {
	case !ok:
		return types.NewErr("a list is not indexed by %s", typeName(index))
	case i < 0 || int(i) >= len(a.elements):
		return types.NewErr("index out of bounds: %d", int64(i))
	}
	return fromJSON(a.elements[i])
}

func (a *array) Contains(value ref.Val) ref.Val {
	a.open()
	for _, element := range a.elements {
		if types.Equal(fromJSON(element), value) == types.True {
			return types.True
		}
	}
	return types.False
}

func (a *array) Add(other ref.Val) ref.Val {
	return types.NewRefValList(types.DefaultTypeAdapter, a.values()).Add(other)
}

func (a *array) Iterator() traits.Iterator {
	a.open()
	return &cursor{size: len(a.elements), at: func(i int) ref.Val { return fromJSON(a.elements[i]) }}
}

func (a *array) Size() ref.Val {
	a.open()
	return types.Int(len(a.elements))
}

func (a *array) Equal(other ref.Val) ref.Val {
	if same, ok := other.(*array); ok {
		return types.Bool(string(a.text) == string(same.text))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, a.values()).Equal(other)
}

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

func (a *array) Value() any { return string(a.text) }

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
