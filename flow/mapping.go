package flow

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/flow/internal/expr"
)

// template compiles a mapped value: JSON whose strings may contain expressions. A nil
// reader means the flow's output, which may mention every activity.
func (k *compiler) template(n *node, r *reader, path string) (*expr.Template, []string) {
	if n == nil {
		return nil, nil
	}
	faults := len(k.faults)
	var b expr.TemplateBuilder
	k.value(&b, n, r, path)
	if len(k.faults) > faults {
		return nil, nil
	}
	t := b.Template()
	if len(t.Refs()) == 0 {
		if text, err := t.Eval(source{scope: constant{NewBudget(nil)}}); err == nil && len(text) > MaxMappedBytes {
			k.add(n.position, path, "", "a value of %d bytes, at most %d are allowed", len(text), MaxMappedBytes)
		}
	}
	return t, needsOf(t.Refs())
}

func (k *compiler) value(b *expr.TemplateBuilder, n *node, r *reader, path string) {
	switch n.kind {
	case kindString:
		k.text(b, n, r, path)
	case kindList:
		b.Text('[')
		b.Nest(1)
		for i, item := range n.items {
			if i > 0 {
				b.Text(',')
			}
			k.value(b, item, r, fmt.Sprintf("%s[%d]", path, i))
		}
		b.Nest(-1)
		b.Text(']')
	case kindMap:
		members := slices.Clone(n.members)
		slices.SortFunc(members, func(x, y member) int { return strings.Compare(x.key, y.key) })
		b.Text('{')
		b.Nest(1)
		for i, m := range members {
			if i > 0 {
				b.Text(',')
			}
			b.Text(append(canonical.AppendString(nil, m.key), ':')...)
			k.value(b, m.value, r, join(path, m.key))
		}
		b.Nest(-1)
		b.Text('}')
	default:
		b.Text([]byte(n.text)...)
	}
}

// text compiles a string. A single expression gives its own value; any other expressions
// are put into the string.
func (k *compiler) text(b *expr.TemplateBuilder, n *node, r *reader, path string) {
	pieces, open := split(n.text)
	if open >= 0 {
		k.within(n, open, path, n.text, "an expression without its closing brace; $${ is a literal ${")
		return
	}
	k.warnText(n, path)
	whole := len(pieces) == 1 && pieces[0].expression
	if !whole {
		b.Text('"')
	}
	for _, p := range pieces {
		if !p.expression {
			quoted := canonical.AppendString(nil, p.text)
			b.Text(quoted[1 : len(quoted)-1]...)
			continue
		}
		source := strings.TrimSpace(p.text)
		offset := p.offset + utf8.RuneCountInString(p.text[:strings.Index(p.text, source)])
		if program := k.expression(n, offset, source, r, path); program != nil {
			b.Program(program, source, !whole)
		}
	}
	if !whole {
		b.Text('"')
	}
}

// piece is a part of a string: text, or an expression without its ${ }.
type piece struct {
	text       string
	expression bool
	offset     int // of text, in characters
}

// split cuts a string at its expressions. open is the place of one without an end, or −1.
func split(s string) (pieces []piece, open int) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			pieces = append(pieces, piece{text: text.String()})
			text.Reset()
		}
	}
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "$${"):
			text.WriteString("${")
			i += 3
		case strings.HasPrefix(s[i:], "${"):
			end := expressionEnd(s, i+2)
			if end < 0 {
				return nil, utf8.RuneCountInString(s[:i])
			}
			flush()
			pieces = append(pieces, piece{text: s[i+2 : end], expression: true, offset: utf8.RuneCountInString(s[:i+2])})
			i = end + 1
		default:
			text.WriteByte(s[i])
			i++
		}
	}
	flush()
	return pieces, -1
}

// expressionEnd finds the brace that closes an expression. It skips braces in strings and
// of maps.
func expressionEnd(s string, i int) int {
	depth := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '"', '\'':
			quote := s[i]
			for i++; i < len(s) && s[i] != quote; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}
