package expr

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/quipu-journal/quipu/canonical"
)

// Source gives the values of mentions as canonical JSON. It is asked only for mentions
// that an evaluation reaches.
type Source interface {
	// Value gives one value; an error ends the evaluation.
	Value(r Ref) ([]byte, error)
	// Spend takes units of work from the budget that the evaluation shares with others of its step,
	// before the work is done; an error ends the evaluation.
	Spend(units int64) error
}

var (
	errNoBool = errors.New("the value is not true or false")
	errDeep   = fmt.Errorf("the value is nested deeper than %d", canonical.MaxDepth)
)

// AppendJSON evaluates the expression and appends its value as canonical payload JSON. A
// time becomes an RFC 3339 string, a duration a string of seconds ("90s"), bytes a base64
// string.
func (p *Program) AppendJSON(dst []byte, src Source) ([]byte, error) {
	if p.shared == nil {
		text, err := p.follow(src)
		return append(dst, text...), err
	}
	value, err := p.eval(src)
	if err != nil {
		return dst, err
	}
	return appendValue(dst, value, 0)
}

// AppendText evaluates the expression and appends its value for use inside a string,
// escaped for JSON, without quotes: a string as it is, any other value as its JSON text.
func (p *Program) AppendText(dst []byte, src Source) ([]byte, error) {
	text, err := p.AppendJSON(nil, src)
	if err != nil {
		return dst, err
	}
	if text[0] == '"' {
		return append(dst, text[1:len(text)-1]...), nil
	}
	if !strings.ContainsAny(string(text), `"\`) {
		return append(dst, text...), nil
	}
	quoted := canonical.AppendString(nil, string(text))
	return append(dst, quoted[1:len(quoted)-1]...), nil
}

// Bool evaluates a condition.
func (p *Program) Bool(src Source) (bool, error) {
	if p.shared == nil {
		text, err := p.follow(src)
		if err == nil && string(text) != "true" && string(text) != "false" {
			err = errNoBool
		}
		return string(text) == "true", err
	}
	value, err := p.eval(src)
	if err != nil {
		return false, err
	}
	b, ok := value.(types.Bool)
	if !ok {
		return false, errNoBool
	}
	return bool(b), nil
}

// follow reads a direct path from the JSON text.
func (p *Program) follow(src Source) ([]byte, error) {
	text, err := src.Value(p.refs[0])
	if err != nil {
		return nil, err
	}
	for _, key := range p.path {
		if text, err = lookUp(text, key); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// lookUp finds a plain key (ASCII, without escapes) in an object.
func lookUp(text []byte, key string) ([]byte, error) {
	if text[0] == '{' {
		for name, value := range canonical.Members(text) {
			if string(name[1:len(name)-1]) == key {
				return value, nil
			}
		}
	}
	return nil, fmt.Errorf("no such key: %s", key)
}

// values is the activation of one evaluation. It implements cel.Activation.
type values struct {
	program *Program
	src     Source
	known   []ref.Val
	err     error
}

func (v *values) Parent() cel.Activation { return nil }

func (v *values) ResolveName(name string) (any, bool) {
	digits, isTime := strings.CutPrefix(name[1:], "t")
	i := 0
	for _, c := range digits {
		i = i*10 + int(c-'0')
	}
	if v.known[i] != nil {
		return v.known[i], true
	}
	text, err := v.src.Value(v.program.refs[i])
	if err != nil {
		v.err = err
		return nil, false
	}
	v.known[i] = fromJSON(text)
	if isTime {
		v.known[i] = v.known[i].ConvertToType(types.TimestampType)
	}
	return v.known[i], true
}

func (p *Program) eval(src Source) (ref.Val, error) {
	activation := p.activation(src)
	value, _, err := p.program.Eval(activation)
	switch {
	case activation.err != nil:
		return nil, activation.err
	case err != nil:
		return nil, p.clashed(err, src)
	}
	return value, nil
}

func (p *Program) activation(src Source) *values {
	return &values{program: p, src: src, known: make([]ref.Val, len(p.refs))}
}

// appendValue writes a value as canonical JSON; depth counts the objects and arrays
// around it.
func appendValue(dst []byte, value ref.Val, depth int) ([]byte, error) {
	switch v := value.(type) {
	case types.Int, *decimal:
		return appendNumber(dst, v)
	case types.String:
		return appendText(dst, string(v))
	case types.Bool:
		if v {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case types.Null:
		return append(dst, "null"...), nil
	case *object:
		return appendNested(dst, v.text, depth)
	case *array:
		return appendNested(dst, v.text, depth)
	case types.Timestamp:
		return appendText(dst, v.UTC().Format(time.RFC3339Nano))
	case types.Duration:
		return appendText(dst, string(v.ConvertToType(types.StringType).(types.String)))
	case types.Bytes:
		return appendText(dst, base64.StdEncoding.EncodeToString(v))
	}
	if depth == canonical.MaxDepth {
		return dst, errDeep
	}
	switch v := value.(type) {
	case traits.Mapper:
		return appendMap(dst, v, depth+1)
	case traits.Lister:
		return appendList(dst, v, depth+1)
	}
	return dst, fmt.Errorf("a %s has no form in JSON", value.Type().TypeName())
}

func appendText(dst []byte, text string) ([]byte, error) {
	if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return dst, errors.New("a string with U+0000 or invalid UTF-8")
	}
	return canonical.AppendString(dst, text), nil
}

func appendList(dst []byte, list traits.Lister, depth int) ([]byte, error) {
	dst = append(dst, '[')
	first := true
	for it := list.Iterator(); it.HasNext() == types.True; first = false {
		if !first {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendValue(dst, it.Next(), depth); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendMap(dst []byte, m traits.Mapper, depth int) ([]byte, error) {
	var keys []string
	for it := m.Iterator(); it.HasNext() == types.True; {
		key, ok := it.Next().(types.String)
		if !ok {
			return dst, errors.New("a key that is not a string")
		}
		keys = append(keys, string(key))
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendText(dst, key); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, err = appendValue(dst, m.Get(types.String(key)), depth); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}
