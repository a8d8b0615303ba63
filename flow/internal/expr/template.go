package expr

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// MaxResultBytes bounds a mapped value.
const MaxResultBytes = 1 << 20

// Template is a mapped value: canonical JSON that contains expressions. It is immutable
// and safe for concurrent use.
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

// EvalError is a failed expression, with its text.
type EvalError struct {
	Expression string
	Err        error
}

// Error names the expression.
func (e *EvalError) Error() string { return fmt.Sprintf("%s: %v", e.Expression, e.Err) }

// Unwrap returns the cause.
func (e *EvalError) Unwrap() error { return e.Err }

// TemplateBuilder builds a Template, in the order of the canonical text.
type TemplateBuilder struct {
	parts []part
	refs  []Ref
	known map[Ref]bool // refs
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

// Nest counts the open objects and arrays: call Nest(1) after an opening bracket and
// Nest(-1) before the closing one.
func (b *TemplateBuilder) Nest(by int) { b.depth += by }

// Program appends an expression's value; within says that it is inside a string whose
// quotes are constant text.
func (b *TemplateBuilder) Program(p *Program, source string, within bool) {
	b.parts = append(b.parts, part{program: p, source: source, within: within, depth: b.depth})
	for _, r := range p.refs {
		if !b.known[r] {
			if b.known == nil {
				b.known = map[Ref]bool{}
			}
			b.known[r] = true
			b.refs = append(b.refs, r)
		}
	}
}

// Template returns the finished Template.
func (b *TemplateBuilder) Template() *Template { return &Template{parts: b.parts, refs: b.refs} }

// Refs returns the mentions of all expressions.
func (t *Template) Refs() []Ref { return t.refs }

// Source is the expression's text if the value is a single expression, otherwise "".
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
		if out, err = t.parts[i].append(out, src); err == nil && len(out) > MaxResultBytes && !t.asItIs() {
			err = errLarge
		}
		if err != nil {
			return nil, &EvalError{Expression: t.parts[i].source, Err: err}
		}
	}
	return out, nil
}

// append appends the text of a part, or the value of its expression.
func (p *part) append(dst []byte, src Source) (out []byte, err error) {
	out = dst
	step := src.Step()
	if p.program == nil {
		return append(out, p.text...), step.afford(len(p.text), samePerUnit)
	}
	if p.within {
		return p.program.AppendText(out, src)
	}
	from := len(out)
	if out, err = p.program.AppendJSON(out, src); err != nil {
		return out, err
	}
	step.begin()
	defer step.ended(&err)
	if step.tooDeep(out[from:], p.depth) {
		err = errDeep
	}
	return out, err
}

// asItIs says that the value is copied from a result, which had its own limit.
func (t *Template) asItIs() bool {
	return len(t.parts) == 1 && t.parts[0].program.shared == nil
}

// tooDeep says that text at a depth exceeds the limit of nesting. Text with few brackets
// cannot, which saves the second read.
func (s *Step) tooDeep(text []byte, depth int) bool {
	if depth == 0 {
		return false
	}
	s.spendFor(len(text), samePerUnit)
	if bytes.Count(text, []byte{'['})+bytes.Count(text, []byte{'{'}) <= canonical.MaxDepth-depth {
		return false
	}
	s.spendFor(len(text), textPerUnit)
	_, err := canonical.Payload(append(bytes.Repeat([]byte{'['}, depth), text...))
	var refused *canonical.Error
	return errors.As(err, &refused) && strings.Contains(refused.Reason, "nested")
}
