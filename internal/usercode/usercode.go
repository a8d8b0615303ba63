package usercode

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of what is read.
const (
	// MaxText bounds a text, in bytes. What is recorded of it is shorter.
	MaxText = 64 << 10
	// MaxChain bounds the errors that are looked at within one error, in the number of errors.
	MaxChain = 256
)

// cutMark ends a text that was cut.
const cutMark = "…"

// Try calls fn. ok is false where it panicked, and panicked says with what.
func Try(fn func()) (panicked string, ok bool) {
	defer func() {
		if v := recover(); v != nil {
			panicked, ok = plain(v), false
		}
	}()
	fn()
	return "", true
}

// Text is what Error returns, at most MaxText bytes. Where Error panics it names the type of the
// error, and the texts of the errors within it. Text(nil) is "".
func Text(err error) string {
	if err == nil {
		return ""
	}
	if t, read := err.(*Error); read {
		return t.text
	}
	text := ""
	panicked, ok := Try(func() { text = err.Error() })
	switch {
	case ok:
		return cut(text)
	case IsNil(err):
		return fmt.Sprintf("a nil %T was returned as an error: return nil itself where there is none", err)
	}
	told := []string{fmt.Sprintf("an error of type %T, whose method Error panicked: %s", err, panicked)}
	for _, inner := range Chain(err)[1:] {
		if _, ok := Try(func() { text = inner.Error() }); ok {
			told = append(told, cut(text))
		} else if IsNil(inner) {
			told = append(told, fmt.Sprintf("a nil %T", inner))
		}
	}
	return cut(strings.Join(told, "; "))
}

// Value is the text of what a panic carries, at most MaxText bytes: that of a string, a number, an
// error and a fmt.Stringer. Of everything else it is the type, because to print a value can take
// for ever, or meet a map that is being written.
func Value(v any) (text string) {
	switch x := v.(type) {
	case error:
		return Text(x)
	case fmt.Stringer:
		panicked, ok := Try(func() { text = x.String() })
		if !ok {
			return fmt.Sprintf("a value of type %T, whose method String panicked: %s", v, panicked)
		}
		return cut(text)
	}
	return plain(v)
}

// plain is Value without a call of a method.
func plain(v any) string {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.String:
		return cut(r.String())
	case reflect.Bool:
		return fmt.Sprint(r.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprint(r.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return fmt.Sprint(r.Uint())
	case reflect.Float32, reflect.Float64:
		return fmt.Sprint(r.Float())
	}
	// The runtime's own errors (a nil pointer, an index out of range) are no code of users.
	if e, ok := v.(interface {
		error
		RuntimeError()
	}); ok && strings.HasPrefix(fmt.Sprintf("%T", v), "runtime.") {
		return cut(e.Error())
	}
	return fmt.Sprintf("a value of type %T", v)
}

// Chain is err and the errors within it, in the order in which errors.As looks at them, at most
// MaxChain. An Unwrap that panics has nothing within. Chain(nil) is empty.
func Chain(err error) (all []error) {
	for open := []error{err}; len(open) > 0 && len(all) < MaxChain; {
		next := open[0]
		open = open[1:]
		if next == nil {
			continue
		}
		all = append(all, next)
		var within []error
		_, ok := Try(func() {
			switch x := next.(type) {
			case interface{ Unwrap() error }:
				within = []error{x.Unwrap()}
			case interface{ Unwrap() []error }:
				within = x.Unwrap()
			}
		})
		if ok {
			open = append(slices.Clone(within[:min(len(within), MaxChain)]), open...)
		}
	}
	return all
}

// As is errors.As on a Chain: the first error that is a T, or whose method As gives one. A nil
// pointer is none.
func As[T any](chain []error) (found T, ok bool) {
	for _, err := range chain {
		if x, is := err.(T); is && !IsNil(x) {
			return x, true
		}
		as, has := err.(interface{ As(any) bool })
		if !has {
			continue
		}
		var x T
		if _, fine := Try(func() { ok = as.As(&x) }); fine && ok && !IsNil(x) {
			return x, true
		}
	}
	return found, false
}

// Is is errors.Is on a Chain, for a target that is one value of ours.
func Is(chain []error, target error) (is bool) {
	for _, err := range chain {
		if t := reflect.TypeOf(err); t == reflect.TypeOf(target) && t.Comparable() && err == target {
			return true
		}
		if x, has := err.(interface{ Is(error) bool }); has {
			if _, ok := Try(func() { is = x.Is(target) }); ok && is {
				return true
			}
		}
	}
	return false
}

// Error is an error that was read: its text, and nothing of the user's.
type Error struct{ text string }

// Read is err as an Error, nil for nil.
func Read(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Text(err)}
}

// Error is the text.
func (e *Error) Error() string { return e.text }

// IsNil says that v is nil, or holds a nil pointer, map, slice, function or channel.
func IsNil(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return r.IsNil()
	}
	return false
}

// cut is the beginning of a long text, as a text of its own, so that the long one can be freed.
func cut(s string) string {
	if len(s) <= MaxText {
		return s
	}
	end := MaxText - len(cutMark)
	for end > MaxText-len(cutMark)-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.Clone(s[:end]) + cutMark
}
