package workers

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// travel refuses types of input and output that JSON has no value for when the process
// starts, rather than with the first job.
func travel[In, Out any]() Option {
	return func(*handler) error {
		return errors.Join(travels[In]("input", ownReader), travels[Out]("output", ownWriter))
	}
}

func travels[T any](what string, own []reflect.Type) error {
	if at := stuck(reflect.TypeFor[T](), own, map[reflect.Type]bool{}); at != nil {
		return fmt.Errorf("its %s %v cannot be JSON: %v", what, reflect.TypeFor[T](), at)
	}
	return nil
}

// ownWriter and ownReader are the interfaces of types that marshal and unmarshal
// themselves.
var (
	ownWriter = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}
	ownReader = []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}
)

// stuck is the type within t that JSON has no value for, nil for none. It ignores fields
// that do not travel and values of interface types.
func stuck(t reflect.Type, own []reflect.Type, seen map[reflect.Type]bool) reflect.Type {
	if seen[t] {
		return nil
	}
	seen[t] = true
	for _, o := range own {
		if t.Implements(o) || reflect.PointerTo(t).Implements(o) {
			return nil
		}
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return t
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return stuck(t.Elem(), own, seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
				continue
			}
			if at := stuck(f.Type, own, seen); at != nil {
				return at
			}
		}
	}
	return nil
}
