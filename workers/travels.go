package workers

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
)

// travels refuses an output type that JSON has no value for when the process starts,
// rather than with the first job.
func travels[T any]() Option {
	return func(*handler) error {
		if at := stuck(reflect.TypeFor[T](), map[reflect.Type]bool{}); at != nil {
			return fmt.Errorf("its output %v cannot be JSON: %v", reflect.TypeFor[T](), at)
		}
		return nil
	}
}

// ownJSON are the interfaces of types that marshal themselves.
var ownJSON = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

// stuck is the type within t that JSON has no value for, nil for none. It ignores fields
// that are not written and values of interface types.
func stuck(t reflect.Type, seen map[reflect.Type]bool) reflect.Type {
	if seen[t] {
		return nil
	}
	seen[t] = true
	for _, own := range ownJSON {
		if t.Implements(own) || reflect.PointerTo(t).Implements(own) {
			return nil
		}
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return t
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return stuck(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
				continue
			}
			if at := stuck(f.Type, seen); at != nil {
				return at
			}
		}
	}
	return nil
}
