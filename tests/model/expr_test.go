package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Values of the interpreter are nil, bool, int, string, []any and
// map[string]any, and unknown.

// unknown is a value that the interpreter cannot know, as a derived key. It may
// be looked into and handed on, but not computed with.
type unknown struct{}

var unknownType = cel.ObjectType("model.unknown", traits.IndexerType)

// Get looks into it.
func (u unknown) Get(ref.Val) ref.Val { return u }

// Equal is false: nobody knows.
func (unknown) Equal(ref.Val) ref.Val { return types.False }

// Type is one of its own, for which nothing is defined.
func (unknown) Type() ref.Type { return unknownType }

// Value is itself.
func (u unknown) Value() any { return u }

// ConvertToType is not defined.
func (unknown) ConvertToType(ref.Type) ref.Val { return types.NewErr("an unknown value") }

// ConvertToNative is not defined.
func (unknown) ConvertToNative(reflect.Type) (any, error) { return nil, errors.New("an unknown value") }

// exprError is an expression that fails, which is part of a flow's meaning.
type exprError struct{ text string }

func (e *exprError) Error() string { return e.text }

// names gives the value of a name.
type names func(name string) any

// scope has CEL ask for names. What is wrong with one is a mistake of this package.
type scope struct {
	names
	broken any
}

// ResolveName implements cel.Activation.
func (s *scope) ResolveName(name string) (v any, found bool) {
	if strings.Contains(name, ".") {
		return nil, false // it is asked for names with their fields first
	}
	defer func() {
		if r := recover(); r != nil {
			s.broken = r
		}
	}()
	return s.names(name), true
}

// Parent implements cel.Activation.
func (*scope) Parent() cel.Activation { return nil }

// adapter makes CEL's values of the interpreter's.
type adapter struct{}

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		return types.NewStringInterfaceMap(a, v)
	case []any:
		return types.NewDynamicList(a, v)
	case unknown:
		return v
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// native is the value of the interpreter.
func native(v ref.Val) any {
	switch v := v.(type) {
	case types.Null:
		return nil
	case types.Int:
		return int(v)
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			out = append(out, native(it.Next()))
		}
		return out
	case traits.Mapper:
		out := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			out[k.Value().(string)] = native(v.Get(k))
		}
		return out
	}
	return v.Value()
}

var language = sync.OnceValues(func() (*cel.Env, error) { return cel.NewEnv(cel.CustomTypeAdapter(adapter{})) })

// programs are those of expressions, by their text.
var programs sync.Map

// evaluate evaluates an expression, by CEL as it is. It panics on what cannot be
// read: that is a mistake of this package.
func evaluate(source string, env names) (any, error) {
	p, ok := programs.Load(source)
	if !ok {
		lang, err := language()
		if err != nil {
			panic(err)
		}
		tree, faults := lang.Parse(source)
		if faults.Err() != nil {
			panic(fmt.Sprintf("model: cannot read %q: %v", source, faults.Err()))
		}
		if p, err = lang.Program(tree); err != nil {
			panic(err)
		}
		programs.Store(source, p)
	}
	s := &scope{names: env}
	v, _, err := p.(cel.Program).Eval(s)
	if s.broken != nil {
		panic(s.broken)
	}
	if err != nil {
		return nil, &exprError{err.Error()}
	}
	return native(v), nil
}

// mapped evaluates a mapped value: expressions in its strings, wherever they are.
func mapped(v any, env names) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			y, err := mapped(x, env)
			if err != nil {
				return nil, err
			}
			out[k] = y
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			y, err := mapped(x, env)
			if err != nil {
				return nil, err
			}
			out[i] = y
		}
		return out, nil
	case string:
		return template(v, env)
	}
	return v, nil
}

// template evaluates a string with expressions in it. Braces do not occur within
// the expressions of this package.
func template(s string, env names) (any, error) {
	out := ""
	for rest := s; ; {
		before, after, found := strings.Cut(rest, "${")
		if !found {
			return out + rest, nil
		}
		source, tail, closed := strings.Cut(after, "}")
		if !closed {
			panic("model: an open expression in " + s)
		}
		v, err := evaluate(source, env)
		if err != nil || before == "" && tail == "" && rest == s {
			return v, err
		}
		text, ok := v.(string)
		if !ok {
			text = spell(v)
		}
		out += before + text
		rest = tail
	}
}

// spell gives a value its one spelling.
func spell(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// unspell reads JSON into the values of the interpreter.
func unspell(text []byte) any {
	if len(text) == 0 {
		return nil
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		panic(fmt.Sprintf("model: %v in %q", err, text))
	}
	return plain(v)
}

// plain turns what decoders give into the values of the interpreter.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = plain(x)
		}
	case []any:
		for i, x := range v {
			v[i] = plain(x)
		}
	case json.Number:
		n, err := strconv.Atoi(v.String())
		if err != nil {
			panic("model: not a whole number: " + v.String())
		}
		return n
	case uint64:
		return int(v) //nolint:gosec // flows of this package have small numbers only
	case int64:
		return int(v)
	}
	return v
}
