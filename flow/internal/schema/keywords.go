package schema

import (
	"fmt"
	"math/bits"
	"regexp/syntax"
	"unicode/utf8"
)

// fixed is a const.
type fixed struct{ form string }

// enum is a set of values, by their canonical forms.
type enum struct {
	forms   map[string]struct{}
	longest int
	nested  bool
	first   []string // for messages
	more    int
}

// plain applies the keywords that look at the value as a whole. The first that fails ends the
// check of the rule, as in the library.
func (c *checking) plain() bool {
	r := c.rule
	switch {
	case r.types != 0 && !c.hasType():
		c.fail(func() string { return fmt.Sprintf("got %s, want %s", c.kind, r.typesText) })
	case r.fixed != nil && !c.is(r.fixed):
		c.fail(func() string { return r.fixed.message() })
	case r.enum != nil && !c.isOneOf(r.enum):
		c.fail(func() string { return r.enum.message() })
	case r.format != nil && c.kind == text:
		c.formats()
	}
	return !c.bad && c.err == nil
}

func (c *checking) hasType() bool {
	types := c.rule.types
	return types&(1<<c.kind) != 0 || c.kind == number && types&(1<<integer) != 0 && isInteger(c.form(c.v))
}

func (c *checking) is(f *fixed) bool {
	form := c.form(c.v)
	return len(form) == len(f.form) && c.pay(int64(len(form))/formSpan) && form == f.form
}

func (c *checking) isOneOf(e *enum) bool {
	form := c.form(c.v)
	if len(form) > e.longest || !c.pay(enumPrice+int64(len(form))/formSpan) {
		return false
	}
	_, ok := e.forms[form]
	return ok
}

func (c *checking) formats() {
	form := c.form(c.v)
	if !c.pay(2 + int64(len(form))/formatSpan) {
		return
	}
	var err error
	if s := c.string(c.v); c.rule.format.Name == "regex" {
		err = c.regex(s)
	} else {
		err = c.rule.format.Validate(s)
	}
	if err != nil {
		c.fail(func() string { return fmt.Sprintf("%s is not valid %s: %s", shown(form), c.rule.format.Name, err) })
	}
}

// regex checks a text that is a pattern itself.
func (c *checking) regex(s string) error {
	if len(s) <= MaxPattern && !c.pay(int64(len(s))*regexPrice) {
		return nil
	}
	_, err := parsePattern(s)
	if e, ok := err.(*syntax.Error); ok {
		return e
	}
	return err
}

// regexPrice is for one byte of a pattern that is read.
const regexPrice = 40

func (c *checking) texts(t *textRule) {
	form := c.form(c.v)
	if !c.pay(int64(len(form)) / formSpan) {
		return
	}
	s := c.string(c.v)
	if t.least != nil || t.most != nil {
		n := utf8.RuneCountInString(s)
		c.bounds("minLength", "maxLength", n, t.least, t.most)
	}
	if t.pattern != nil && !c.settled() && !c.matches(t.pattern, s) {
		c.fail(func() string { return fmt.Sprintf("%s does not match pattern %s", shown(form), quote(t.pattern.text)) })
	}
}

// matches runs a pattern; its steps are paid as they are made.
func (c *checking) matches(p *Pattern, s string) bool {
	if !c.pay(patternPrice + int64(max(0, len(p.code)-len(c.machine.now.at)))/formSpan) {
		return false
	}
	return c.machine.matches(p, s, func(steps int64) bool { return c.pay(steps / stepSpan) })
}

// bounds checks a count against its limits.
func (c *checking) bounds(below, above string, n int, least, most *int) {
	if least != nil && n < *least {
		c.fail(func() string { return fmt.Sprintf("%s: got %d, want %d", below, n, *least) })
	}
	if most != nil && n > *most {
		c.fail(func() string { return fmt.Sprintf("%s: got %d, want %d", above, n, *most) })
	}
}

func (c *checking) numbers(n *numberRule) {
	form := c.form(c.v)
	d := parseDecimal(form)
	if l := n.least; c.asks(d, form, l) && d.compare(l) < 0 {
		c.failNumber("minimum", form, l)
	}
	if l := n.most; c.asks(d, form, l) && d.compare(l) > 0 {
		c.failNumber("maximum", form, l)
	}
	if l := n.above; c.asks(d, form, l) && d.compare(l) <= 0 {
		c.failNumber("exclusiveMinimum", form, l)
	}
	if l := n.below; c.asks(d, form, l) && d.compare(l) >= 0 {
		c.failNumber("exclusiveMaximum", form, l)
	}
	if l := n.multiple; c.asks(d, form, l) && !d.isMultiple(l) {
		c.failNumber("multipleOf", form, l)
	}
}

// asks reports whether a number is to be compared with a limit, and pays for that.
func (c *checking) asks(d decimal, form string, l *limit) bool {
	return l != nil && !c.settled() && c.pay(d.price(form, l))
}

func (c *checking) failNumber(keyword, form string, l *limit) {
	c.fail(func() string { return fmt.Sprintf("%s: got %s, want %s", keyword, numberText(form), l.text) })
}

// missing are those of the names that an object does not have.
func (c *checking) missing(o *value, n *names) (missing []string) {
	depth := int64(bits.Len32(o.count))
	if !c.pay((int64(len(n.list))*(depth+2))/4 + n.bytes*depth/formSpan) {
		return nil
	}
	for _, name := range n.list {
		if !c.member(o, name) {
			if missing = append(missing, name); c.found == nil {
				return missing
			}
		}
	}
	return missing
}
