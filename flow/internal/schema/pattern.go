package schema

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// Limits of the patterns of a schema.
const (
	// MaxPattern bounds a pattern, in bytes.
	MaxPattern = 8 << 10
	// MaxPatternSize bounds all patterns of a schema together, in bytes and instructions;
	// a{1000} has some thousand of them.
	MaxPatternSize = 100_000
)

// Pattern is a regular expression whose matching is counted.
type Pattern struct {
	text     string
	code     []syntax.Inst
	start    uint32
	anchored bool // matches only from the start of the text
	placed   bool // asks for a place: the start of a line, the end of a word
}

var errPatternSize = fmt.Errorf("the patterns of a schema have at most %d bytes and instructions in all: repeat less in them", MaxPatternSize)

// patterns compiles the patterns of a schema, each text once.
type patterns struct {
	known map[string]*Pattern
	size  int64
}

func (p *patterns) compile(text string) (*Pattern, error) {
	if known, ok := p.known[text]; ok {
		return known, nil
	}
	if p.size += int64(len(text)); p.size > MaxPatternSize {
		return nil, errPatternSize
	}
	tree, err := parsePattern(text)
	if err != nil {
		return nil, err
	}
	if p.size += instructions(tree) + tables(tree); p.size > MaxPatternSize {
		return nil, errPatternSize
	}
	code, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	compiled := &Pattern{text: text, code: code.Inst, start: uint32(code.Start)}
	compiled.anchored = code.StartCond()&syntax.EmptyBeginText != 0
	compiled.placed = slices.ContainsFunc(code.Inst, func(i syntax.Inst) bool { return i.Op == syntax.InstEmptyWidth })
	if p.known == nil {
		p.known = map[string]*Pattern{}
	}
	p.known[text] = compiled
	return compiled, nil
}

// parsePattern reads a pattern as package regexp does.
func parsePattern(text string) (*syntax.Regexp, error) {
	if len(text) > MaxPattern {
		return nil, fmt.Errorf("a pattern has at most %d bytes, this has %d", MaxPattern, len(text))
	}
	return syntax.Parse(text, syntax.Perl)
}

// instructions is about how many a pattern will have.
func instructions(r *syntax.Regexp) int64 {
	n := int64(2 + len(r.Rune))
	if r.Op == syntax.OpCharClass {
		n = 1
	}
	for _, sub := range r.Sub {
		n += instructions(sub)
	}
	if r.Op == syntax.OpRepeat {
		n *= int64(max(r.Max, r.Min+1, 1))
	}
	return n
}

// tables is the size of the character classes of a pattern; repetitions share them.
func tables(r *syntax.Regexp) (n int64) {
	if r.Op == syntax.OpCharClass {
		n = int64(len(r.Rune)) / 8
	}
	for _, sub := range r.Sub {
		n += tables(sub)
	}
	return n
}

// String is the pattern's text.
func (p *Pattern) String() string { return p.text }

// MatchString reports whether a text has a match, without a limit.
func (p *Pattern) MatchString(s string) bool {
	var m machine
	return m.matches(p, s, func(int64) bool { return true })
}

// machine runs a pattern over a text: all alternatives at once, one character after the other.
type machine struct {
	now, then threads
	stack     []uint32
	steps     int64
}

// threads is a set of instructions.
type threads struct {
	list []uint32 // in the order in which they came
	at   []uint32 // where in the list an instruction is, if it is there
}

func (t *threads) reset(n int) {
	if len(t.at) < n {
		t.list, t.at = make([]uint32, 0, n), make([]uint32, n)
	}
	t.list = t.list[:0]
}

func (t *threads) add(pc uint32) bool {
	if i := t.at[pc]; int(i) < len(t.list) && t.list[i] == pc {
		return false
	}
	t.at[pc] = uint32(len(t.list))
	t.list = append(t.list, pc)
	return true
}

// matches reports whether a text has a match. pay is told the steps, and ends the work.
func (m *machine) matches(p *Pattern, s string, pay func(steps int64) bool) bool {
	m.now.reset(len(p.code))
	m.then.reset(len(p.code))
	m.steps = 0
	before, r, size := rune(-1), rune(-1), 0
	if len(s) > 0 {
		r, size = utf8.DecodeRuneInString(s)
	}
	for at := 0; ; {
		m.steps += 2
		if !p.anchored || at == 0 {
			if m.follow(p, &m.now, p.start, p.place(before, r)) {
				pay(m.steps)
				return true
			}
		}
		if r < 0 || p.anchored && len(m.now.list) == 0 {
			pay(m.steps)
			return false
		}
		at += size
		after, next := rune(-1), 0
		if at < len(s) {
			after, next = utf8.DecodeRuneInString(s[at:])
		}
		if m.step(p, r, p.place(r, after)) {
			pay(m.steps)
			return true
		}
		m.now, m.then = m.then, m.now
		m.then.list = m.then.list[:0]
		before, r, size = r, after, next
		if m.steps >= 1024 {
			if !pay(m.steps) {
				return false
			}
			m.steps = 0
		}
	}
}

// place is what a pattern may ask between two characters.
func (p *Pattern) place(before, after rune) syntax.EmptyOp {
	if !p.placed {
		return 0
	}
	return syntax.EmptyOpContext(before, after)
}

// step goes over one character.
func (m *machine) step(p *Pattern, r rune, place syntax.EmptyOp) bool {
	m.steps += int64(len(m.now.list))
	for _, pc := range m.now.list {
		i := &p.code[pc]
		switch i.Op {
		case syntax.InstRune1:
			if r != i.Rune[0] {
				continue
			}
		case syntax.InstRuneAny:
		case syntax.InstRuneAnyNotNL:
			if r == '\n' {
				continue
			}
		case syntax.InstRune:
			if !i.MatchRune(r) {
				continue
			}
		default:
			continue
		}
		if m.follow(p, &m.then, i.Out, place) {
			return true
		}
	}
	return false
}

// follow adds an instruction and what it leads to without a character. It reports whether that
// is the end of a match.
func (m *machine) follow(p *Pattern, t *threads, pc uint32, place syntax.EmptyOp) bool {
	for m.stack = append(m.stack[:0], pc); len(m.stack) > 0; {
		pc := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		if m.steps++; !t.add(pc) {
			continue
		}
		switch i := &p.code[pc]; i.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			m.stack = append(m.stack, i.Arg, i.Out)
		case syntax.InstCapture, syntax.InstNop:
			m.stack = append(m.stack, i.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(i.Arg)&^place == 0 {
				m.stack = append(m.stack, i.Out)
			}
		}
	}
	return false
}
