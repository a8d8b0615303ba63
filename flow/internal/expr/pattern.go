package expr

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Limits of a regular expression.
const (
	// maxPattern bounds its text, in bytes.
	maxPattern = MaxBytes
	// maxPatternSize bounds its program, in instructions: x{1000} has a thousand.
	maxPatternSize = 10_000
)

// Prices of a regular expression. The program of one is a set of places, which are all tried at
// each byte of the text: stepsPerUnit of them for a unit.
const (
	patternPrice, patternBytePrice = 4, 8
	stepsPerUnit                   = 8
)

// pattern is a compiled regular expression.
type pattern struct {
	*regexp.Regexp
	size int // instructions, about
	err  error
}

// compilePattern compiles a regular expression within the limits.
func compilePattern(text string) *pattern {
	if len(text) > maxPattern {
		return &pattern{err: fmt.Errorf("a regular expression has at most %d bytes, this has %d", maxPattern, len(text))}
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return &pattern{err: err}
	}
	size := patternSize(tree)
	if size > maxPatternSize {
		return &pattern{err: fmt.Errorf("a regular expression has at most %d steps, this has about %d", maxPatternSize, size)}
	}
	compiled, err := regexp.Compile(text)
	return &pattern{compiled, size, err}
}

// patternValidator refuses literals that are no regular expressions within the limits.
type patternValidator struct{}

func (patternValidator) Name() string { return "quipu.validator.matches" }

func (patternValidator) Validate(_ *cel.Env, _ cel.ValidatorConfig, a *ast.AST, issues *cel.Issues) {
	ast.PostOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != overloads.Matches {
			return
		}
		args := e.AsCall().Args()
		literal := args[len(args)-1]
		if literal.Kind() != ast.LiteralKind {
			return
		}
		if text, ok := literal.AsLiteral().(types.String); ok {
			if err := compilePattern(string(text)).err; err != nil {
				issues.ReportErrorAtID(literal.ID(), "invalid matches argument: %v", err)
			}
		}
	}))
}

// patternSize is about the size of the program of a regular expression, before its repetitions
// are written out. It stops counting beyond maxPatternSize.
func patternSize(e *syntax.Regexp) int {
	size := 1
	if e.Op == syntax.OpLiteral {
		size += len(e.Rune)
	}
	for _, sub := range e.Sub {
		size += patternSize(sub)
		if size > maxPatternSize {
			return size
		}
	}
	if e.Op == syntax.OpRepeat {
		size *= max(1, e.Min+1, e.Max)
	}
	return size
}

// matches tells whether a text has a part that fits a regular expression, which is compiled once
// in a step.
func (s *Step) matches(a, b ref.Val) ref.Val {
	expression, ok := b.(types.String)
	if !ok {
		return mismatch("matches", a, b)
	}
	return s.pattern(string(expression)).matches(s, a, b)
}

// matchesLiteral is matches for a literal, which is compiled with its expression.
func matchesLiteral(expression string) operation {
	p := compilePattern(expression)
	return p.matches
}

// matches is the operation for one regular expression. The work is the text's length times the
// size of the program.
func (p *pattern) matches(s *Step, a, b ref.Val) ref.Val {
	text, ok := a.(types.String)
	switch {
	case !ok:
		return mismatch("matches", a, b)
	case p.err != nil:
		return types.WrapErr(p.err)
	}
	s.spend(patternPrice + int64(len(text))*int64(p.size)/stepsPerUnit)
	return types.Bool(p.MatchString(string(text)))
}

func (s *Step) pattern(text string) *pattern {
	if len(text) > maxPattern {
		return compilePattern(text)
	}
	if p := s.patterns[text]; p != nil {
		return p
	}
	s.spend(patternBytePrice * int64(len(text)+1))
	p := compilePattern(text)
	s.spend(int64(p.size))
	if s.patterns == nil {
		s.patterns = map[string]*pattern{}
	}
	s.patterns[text] = p
	return p
}
