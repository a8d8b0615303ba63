package model

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Values of the interpreter are nil, bool, int, string, []any and
// map[string]any, and unknown.

// unknown is a value that the interpreter cannot know, as a derived key. It may
// be looked into and handed on, but not computed with.
type unknown struct{}

// exprError is an expression that fails, which is part of a flow's meaning.
type exprError struct{ text string }

func (e *exprError) Error() string { return e.text }

func failf(format string, args ...any) { panic(&exprError{fmt.Sprintf(format, args...)}) }

// names gives the value of a name.
type names func(name string) any

// evaluate evaluates one of the few shapes of expressions that the generator
// writes. It panics on what it does not know: that is a mistake of this package.
func evaluate(source string, env names) (v any, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *exprError:
			v, err = nil, r
		default:
			panic(r)
		}
	}()
	p := &parser{source: source, env: env}
	p.next()
	v = p.ternary(true)
	if p.token != "" {
		p.broken("text behind its end")
	}
	return v, nil
}

// parser evaluates while it parses; what live is false for is only parsed.
type parser struct {
	source, token string
	at            int
	env           names
}

func (p *parser) broken(why string) {
	panic(fmt.Sprintf("model: cannot read %q at %d (%q): %s", p.source, p.at, p.token, why))
}

func (p *parser) next() {
	for p.at < len(p.source) && p.source[p.at] == ' ' {
		p.at++
	}
	rest := p.source[p.at:]
	n := 0
	switch {
	case rest == "":
	case rest[0] == '\'' || rest[0] == '"':
		n = strings.IndexByte(rest[1:], rest[0]) + 2
		if n < 2 {
			p.broken("an open string")
		}
	case isWord(rest[0]):
		for n < len(rest) && isWord(rest[n]) {
			n++
		}
	case len(rest) > 1 && strings.Contains("== != <= >= && ||", rest[:2]) && rest[1] != ' ':
		n = 2
	default:
		n = 1
	}
	p.token, p.at = rest[:n], p.at+n
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func (p *parser) have(token string) bool {
	if p.token != token {
		return false
	}
	p.next()
	return true
}

func (p *parser) want(token string) {
	if !p.have(token) {
		p.broken("want " + token)
	}
}

func (p *parser) ternary(live bool) any {
	c := p.or(live)
	if e, ok := c.(*exprError); ok {
		panic(e)
	}
	if !p.have("?") {
		return c
	}
	yes := live && truth(c)
	a := p.ternary(yes)
	p.want(":")
	b := p.ternary(live && !yes)
	if yes {
		return a
	}
	return b
}

func (p *parser) or(live bool) any {
	v := p.and(live)
	for p.token == "||" {
		v = p.either(live, v, true, p.and)
	}
	return v
}

func (p *parser) and(live bool) any {
	v := p.guarded(live)
	for p.token == "&&" {
		v = p.either(live, v, false, p.guarded)
	}
	return v
}

// either goes on behind || or &&: the side that decides it does so whatever the
// other one is, an error too.
func (p *parser) either(live bool, left any, decides bool, side func(bool) any) any {
	p.next()
	right := side(live)
	if !live {
		return nil
	}
	for _, v := range []any{left, right} {
		if v == decides {
			return decides
		}
	}
	for _, v := range []any{left, right} {
		if e, ok := v.(*exprError); ok {
			return e
		}
		truth(v)
	}
	return !decides
}

// guarded is a side of || or &&: its error is a value, and an error where it is
// looked at. What follows in the text is only parsed then.
func (p *parser) guarded(live bool) (v any) {
	at, token := p.at, p.token
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *exprError:
			p.at, p.token = at, token
			p.relation(false)
			v = r
		default:
			panic(r)
		}
	}()
	return p.relation(live)
}

func (p *parser) relation(live bool) any {
	v := p.sum(live)
	switch op := p.token; op {
	case "==", "!=":
		p.next()
		w := p.sum(live)
		if !live {
			return nil
		}
		return (spell(v) == spell(w)) == (op == "==")
	case "<", ">", "<=", ">=":
		p.next()
		w := p.sum(live)
		if !live {
			return nil
		}
		a, b := number(v), number(w)
		return a < b && op[0] == '<' || a > b && op[0] == '>' || a == b && len(op) == 2
	}
	return v
}

func (p *parser) sum(live bool) any {
	v := p.product(live)
	for {
		switch {
		case p.have("+"):
			w := p.product(live)
			if live {
				v = number(v) + number(w)
			}
		case p.have("-"):
			w := p.product(live)
			if live {
				v = number(v) - number(w)
			}
		default:
			return v
		}
	}
}

func (p *parser) product(live bool) any {
	v := p.unary(live)
	for {
		switch {
		case p.have("*"):
			w := p.unary(live)
			if live {
				v = number(v) * number(w)
			}
		case p.have("%"):
			w := p.unary(live)
			if live {
				v = number(v) % number(w)
			}
		default:
			return v
		}
	}
}

func (p *parser) unary(live bool) any {
	if p.have("!") {
		v := p.unary(live)
		return live && !truth(v)
	}
	v := p.primary(live)
	for {
		switch {
		case p.have("."):
			v = field(v, p.token, live)
			p.next()
		case p.have("["):
			i := p.ternary(live)
			p.want("]")
			v = element(v, i, live)
		default:
			return v
		}
	}
}

func (p *parser) primary(live bool) any {
	word := p.token
	p.next()
	switch {
	case word == "(":
		v := p.ternary(live)
		p.want(")")
		return v
	case word == "[":
		return p.list(live)
	case word == "true" || word == "false":
		return word == "true"
	case word == "null":
		return nil
	case word == "size" && p.have("("):
		v := p.ternary(live)
		p.want(")")
		if !live {
			return nil
		}
		list, ok := v.([]any)
		if !ok {
			failf("size of %T", v)
		}
		return len(list)
	case word == "" || !isWord(word[0]) && word[0] != '\'' && word[0] != '"':
		p.broken("want a value")
	case word[0] == '\'' || word[0] == '"':
		return word[1 : len(word)-1]
	case '0' <= word[0] && word[0] <= '9':
		n, err := strconv.Atoi(word)
		if err != nil {
			p.broken(err.Error())
		}
		return n
	}
	if !live {
		return nil
	}
	return p.env(word)
}

func (p *parser) list(live bool) any {
	out := []any{}
	for !p.have("]") {
		out = append(out, p.ternary(live))
		if !p.have(",") {
			p.want("]")
			break
		}
	}
	return out
}

func field(v any, name string, live bool) any {
	if !live {
		return nil
	}
	switch v := v.(type) {
	case unknown:
		return v
	case map[string]any:
		w, ok := v[name]
		if !ok {
			failf("no such key: %s", name)
		}
		return w
	}
	failf("no field %s in %T", name, v)
	return nil
}

func element(v, i any, live bool) any {
	if !live {
		return nil
	}
	list, ok := v.([]any)
	n := number(i)
	if !ok || n < 0 || n >= len(list) {
		failf("no element %d in %T", n, v)
	}
	return list[n]
}

func truth(v any) bool {
	b, ok := v.(bool)
	if !ok {
		failf("%T is no bool", v)
	}
	return b
}

func number(v any) int {
	n, ok := v.(int)
	if !ok {
		failf("%T is no number", v)
	}
	return n
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
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
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
