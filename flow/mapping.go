package flow

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/flow/internal/expr"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// template compiles a mapped value: JSON whose strings may contain expressions. A nil
// reader means the flow's output, which may mention every activity.
func (k *compiler) template(n *node, r *reader, path string) (*expr.Template, []string) {
	if n == nil {
		return nil, nil
	}
	faults := len(k.faults)
	var b expr.TemplateBuilder
	k.value(&b, n, r, &trail{name: path})
	if len(k.faults) > faults {
		return nil, nil
	}
	t := b.Template()
	if len(t.Refs()) == 0 {
		if text, err := t.Eval(source{scope: constant{k.constants}}); err == nil && len(text) > MaxMappedBytes {
			k.add(n.position, path, "", "a value of %d bytes, at most %d are allowed", len(text), MaxMappedBytes)
		}
	}
	return t, needsOf(t.Refs())
}

func (k *compiler) value(b *expr.TemplateBuilder, n *node, r *reader, at *trail) {
	switch n.kind {
	case kindString:
		k.text(b, n, r, at)
	case kindList:
		b.Text('[')
		b.Nest(1)
		for i, item := range n.items {
			if i > 0 {
				b.Text(',')
			}
			k.value(b, item, r, &trail{above: at, index: i})
		}
		b.Nest(-1)
		b.Text(']')
	case kindMap:
		b.Text('{')
		b.Nest(1)
		for i, m := range n.sorted() {
			if i > 0 {
				b.Text(',')
			}
			b.Text(append(canonical.AppendString(nil, m.key), ':')...)
			k.value(b, m.value, r, at.member(m.key))
		}
		b.Nest(-1)
		b.Text('}')
	default:
		b.Text([]byte(n.text)...)
	}
}

// text compiles a string. A single expression gives its own value; any other expressions
// are put into the string.
func (k *compiler) text(b *expr.TemplateBuilder, n *node, r *reader, at *trail) {
	pieces, open := split(n.text)
	if open >= 0 {
		k.within(n, open, at.String(), n.text, "an expression without its closing brace; $${ is a literal ${")
		return
	}
	k.warnText(n, at)
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
		if handlers.MatchString(source) && k.byName[source] == nil {
			k.within(n, p.offset-len("${"), at.String(), source, "what a handler replaces is written with two $: $${%s}", source)
			continue
		}
		if program := k.expression(n, offset, source, r, at); program != nil {
			b.Program(program, source, !whole)
		}
	}
	if !whole {
		b.Text('"')
	}
}

// handlers matches what a handler replaces: the name of a secret, and the key of its effect.
var handlers = regexp.MustCompile(`^(secret:\S*|key)$`)

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
	counted, characters := 0, 0 // of the bytes before counted
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "$${"):
			text.WriteString("${")
			i += 3
		case strings.HasPrefix(s[i:], "${"):
			characters += utf8.RuneCountInString(s[counted:i])
			counted = i
			end := expr.End(s, i+len("${"))
			if end < 0 {
				return nil, characters
			}
			flush()
			pieces = append(pieces, piece{text: s[i+len("${") : end], expression: true, offset: characters + len("${")})
			i = end + 1
		default:
			text.WriteByte(s[i])
			i++
		}
	}
	flush()
	return pieces, -1
}
