package expr

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/canonical"
)

// MaxResultBytes is the size of a mapped value.
const MaxResultBytes = 1 << 20

// Template is a mapped value: canonical JSON with expressions in it. It is
// immutable and safe for concurrent use.
type Template struct {
	parts []part
	refs  []Ref
}

// part is either constant JSON text or an expression.
type part struct {
	text    []byte
	program *Program
	source  string
	within  bool // the value goes into a string
	depth   int
}

// EvalError is an expression that failed, with its text.
type EvalError struct {
	Expression string
	Err        error
}

// Error names the expression.
func (e *EvalError) Error() string { return fmt.Sprintf("%s: %v", e.Expression, e.Err) }

// Unwrap returns the cause.
func (e *EvalError) Unwrap() error { return e.Err }

// TemplateBuilder puts a Template together, in the order of the canonical text.
type TemplateBuilder struct {
	parts []part
	refs  []Ref
	depth int
}

// Text appends constant JSON text.
func (b *TemplateBuilder) Text(text ...byte) {
	if n := len(b.parts); n > 0 && b.parts[n-1].program == nil {
		b.parts[n-1].text = append(b.parts[n-1].text, text...)
		return
	}
	b.parts = append(b.parts, part{text: bytes.Clone(text)})
}

// Nest counts the objects and arrays that are open: Nest(1) behind an opening
// bracket, Nest(-1) at its end.
func (b *TemplateBuilder) Nest(by int) { b.depth += by }

// Program appends an expression's value; within says that it goes into a string
// whose quotes are constant text.
func (b *TemplateBuilder) Program(p *Program, source string, within bool) {
	b.parts = append(b.parts, part{program: p, source: source, within: within, depth: b.depth})
	for _, r := range p.refs {
		if !slices.Contains(b.refs, r) {
			b.refs = append(b.refs, r)
		}
	}
}

// Template returns what was built.
func (b *TemplateBuilder) Template() *Template { return &Template{parts: b.parts, refs: b.refs} }

// Refs returns what the expressions mention.
func (t *Template) Refs() []Ref { return t.refs }

// Source is the text of the one expression that the value is, and empty where
// it is put together from more.
func (t *Template) Source() string {
	if len(t.parts) == 1 {
		return t.parts[0].source
	}
	return ""
}

// Eval returns the value as canonical payload JSON. A value without expressions
// is the same slice every time. The error is an *EvalError.
func (t *Template) Eval(src Source) ([]byte, error) {
	if len(t.parts) == 1 && t.parts[0].program == nil {
		return t.parts[0].text, nil
	}
	var out []byte
	var err error
	for i := range t.parts {
		p := &t.parts[i]
		if p.program == nil {
			out = append(out, p.text...)
			continue
		}
		from := len(out)
		if p.within {
			out, err = p.program.AppendText(out, src)
		} else {
			out, err = p.program.AppendJSON(out, src)
		}
		if err == nil && !p.within && tooDeep(out[from:], p.depth) {
			err = errDeep
		}
		if err == nil && len(out) > MaxResultBytes && !t.asItIs() {
			err = fmt.Errorf("the value has more than %d bytes", MaxResultBytes)
		}
		if err != nil {
			return nil, &EvalError{Expression: p.source, Err: err}
		}
	}
	return out, nil
}

// asItIs says that the value is one that stands elsewhere, and had its limit
// there.
func (t *Template) asItIs() bool {
	return len(t.parts) == 1 && t.parts[0].program.shared == nil
}

// appendNested appends a text that was canonical by itself at a depth.
func appendNested(dst, text []byte, depth int) ([]byte, error) {
	if tooDeep(text, depth) {
		return dst, errDeep
	}
	return append(dst, text...), nil
}

// tooDeep says that text at a depth is nested beyond the limit. A text with few
// brackets cannot be, which is found without reading it twice.
func tooDeep(text []byte, depth int) bool {
	if depth == 0 || bytes.Count(text, []byte{'['})+bytes.Count(text, []byte{'{'}) <= canonical.MaxDepth-depth {
		return false
	}
	_, err := canonical.Payload(append(bytes.Repeat([]byte{'['}, depth), text...))
	var refused *canonical.Error
	return errors.As(err, &refused) && strings.Contains(refused.Reason, "nested")
}
