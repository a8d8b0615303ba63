package differential

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/journal/store"
)

// describe spells a value out, one line for each part that is not zero: nil and
// empty are the same, bytes are text, maps are sorted.
func describe(v any) []string {
	d := &description{}
	d.value("", reflect.ValueOf(v))
	return d.lines
}

type description struct{ lines []string }

func (d *description) value(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Invalid:
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			d.line(path, "is there")
			d.value(path, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			d.value(path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Map:
		keys := map[string]reflect.Value{}
		for _, k := range v.MapKeys() {
			keys[fmt.Sprint(k)] = v.MapIndex(k)
		}
		d.line(path+".len", len(keys))
		for _, k := range sorted(keys) {
			d.line(path+"["+k+"]", "is there")
			d.value(path+"["+k+"]", keys[k])
		}
	case reflect.Slice, reflect.Array:
		d.list(path, v)
	default:
		if !v.IsZero() {
			d.line(path, v)
		}
	}
}

func (d *description) list(path string, v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if v.Len() > 0 && (v.Kind() == reflect.Slice || !v.IsZero()) {
			text := fmt.Sprint(v)
			if v.Kind() == reflect.Slice {
				text = fmt.Sprintf("%q", v.Bytes())
			}
			d.line(path, text)
		}
		return
	}
	d.line(path+".len", v.Len())
	for i := range v.Len() {
		d.value(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
	}
}

func (d *description) line(path string, v any) {
	if s := fmt.Sprint(v); s != "0" {
		d.lines = append(d.lines, path+" = "+s)
	}
}

// differences are the lines of which only one of the two has one.
func differences(a, b []string) string {
	var out strings.Builder
	n := 0
	only := func(name string, of, not []string) {
		has := map[string]bool{}
		for _, l := range not {
			has[l] = true
		}
		for _, l := range of {
			if !has[l] && n < 40 {
				fmt.Fprintf(&out, "\n  %-8s %s", name, l)
				n++
			}
		}
	}
	only("postgres", a, b)
	only("memory", b, a)
	if n == 0 && !slices.Equal(a, b) {
		return "\n  another order:\n  " + strings.Join(a, "\n  ") + "\n  memory:\n  " + strings.Join(b, "\n  ")
	}
	return out.String()
}

// kinds are the errors on which a caller decides.
var kinds = []error{
	store.ErrLost, store.ErrUnavailable, store.ErrUnknown, store.ErrRejected, store.ErrStale, store.ErrLeased,
	store.ErrJobClosed, store.ErrExhausted, store.ErrNotFound, store.ErrVersionTaken, store.ErrSchema, errBody, errRefused,
}

// errBody is the error of an effect's body.
var errBody = errors.New("the body's own error")

// kind says what a caller can see of an error.
func kind(err error) string {
	if err == nil {
		return ""
	}
	var is []string
	if tx, ok := errors.AsType[*store.TxError](err); ok && tx != nil {
		is = append(is, "a TxError")
	}
	if started, ok := errors.AsType[*store.AlreadyStartedError](err); ok {
		is = append(is, fmt.Sprintf("%+v", *started))
	}
	for _, k := range kinds {
		if errors.Is(err, k) {
			is = append(is, k.Error())
		}
	}
	if len(is) == 0 {
		return "another error"
	}
	return strings.Join(is, "; ")
}
