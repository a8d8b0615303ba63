package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types/ref"
)

// Limits of one expression.
const (
	// MaxBytes bounds an expression's text.
	MaxBytes = 8192
	// MaxMentions bounds the different fields of activities and of the job that an
	// expression mentions.
	MaxMentions = 64
	// MaxNesting bounds how deep lists, objects and macros stand in each other, or behind each
	// other: the type checker takes the cube of that.
	MaxNesting = 20
	// maxParseDepth bounds the nesting of an expression.
	maxParseDepth = 100
)

// Ref is a mention in an expression: a field of a name, such as output of charge or id of
// job, or, without Field, a name that is itself a value.
type Ref struct{ Name, Field string }

// String spells the mention as an expression does.
func (r Ref) String() string {
	if r.Field == "" {
		return r.Name
	}
	return r.Name + "." + r.Field
}

// Scope decides what an expression may mention.
type Scope interface {
	// Known says whether a name exists at all, even if it may not be mentioned.
	Known(name string) bool
	// Whole says that a name is itself a value, and not something whose fields are
	// mentioned one by one.
	Whole(name string) bool
	// Mention returns the reason why an expression may not mention r, or "".
	Mention(r Ref) string
	// IsTime says that a field's value is a time, an RFC 3339 string in JSON.
	IsTime(r Ref) bool
}

// Problem is one fault of an expression.
type Problem struct {
	Offset  int    // in characters, from the start of the text
	Text    string // the offending text, may be empty
	Message string
}

// Program is a compiled expression. It is immutable and safe for concurrent use.
type Program struct {
	refs []Ref
	path []string // if shared is nil: the keys to follow from refs[0]
	cuts []cut    // where the text has its mentions
	*shared
}

// shared is the part that expressions of one shape share.
type shared struct {
	program cel.Program
	weights *weights
	kind    *cel.Type
	checked *cel.Ast
	cuts    []cut // of the text that it was made of
}

// Refs returns the mentions, in order.
func (p *Program) Refs() []Ref { return p.refs }

// IsBool says whether the value can be a boolean, as far as the type checker knows.
func (p *Program) IsBool() bool {
	return p.shared == nil || p.kind.IsAssignableType(cel.BoolType) || p.kind.IsExactType(cel.DynType)
}

// IsList says whether the value can be a list, as far as the type checker knows.
func (p *Program) IsList() bool {
	return p.shared == nil || p.kind.Kind() == cel.ListKind || p.kind.IsExactType(cel.DynType)
}

// Compiler compiles the expressions of one flow. It is not safe for concurrent
// use.
type Compiler struct{ shapes map[string]*shared }

// NewCompiler returns a Compiler; expressions of one shape share a program.
func NewCompiler() *Compiler { return &Compiler{shapes: map[string]*shared{}} }

// slotName and timeSlot name the variables that replace mentions. The @ cannot occur in
// an expression.
func slotName(i int) string { return "@" + strconv.Itoa(i) }
func timeSlot(i int) string { return "@t" + strconv.Itoa(i) }

// environment is the CEL environment of all flows.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	subset := cel.StdLibSubset(librarySubset())
	options := []cel.EnvOption{
		cel.StdLib(subset),
		cel.ParserRecursionLimit(maxParseDepth), cel.ParserExpressionSizeLimit(MaxBytes),
		cel.ASTValidators(patternValidator{}, cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
		cel.DefaultUTCTimeZone(true),
	}
	for i := range MaxMentions {
		options = append(options, cel.Variable(slotName(i), cel.DynType), cel.Variable(timeSlot(i), cel.TimestampType))
	}
	env, err := cel.NewCustomEnv(append(options, functions()...)...)
	if err == nil {
		// With its first error cel-go makes a list of all names, which other checks read meanwhile.
		_, _ = env.Compile("undeclared()")
	}
	return env, err
})

// Compile parses and checks an expression. With problems the program is nil.
func (c *Compiler) Compile(text string, scope Scope) (*Program, []Problem) {
	if len(text) > MaxBytes {
		return nil, []Problem{{Message: fmt.Sprintf("an expression has at most %d bytes, this has %d", MaxBytes, len(text))}}
	}
	if p, path := directPath(text, scope); path != nil {
		if reason := scope.Mention(p); reason != "" {
			return nil, []Problem{{Text: p.String(), Message: reason}}
		}
		if !scope.IsTime(p) || len(path) == 0 {
			return &Program{refs: []Ref{p}, path: path}, nil
		}
	}
	env, err := environment()
	if err != nil {
		return nil, []Problem{{Message: err.Error()}}
	}
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		if problems := wordAsField(text); problems != nil {
			return nil, problems
		}
		return nil, problemsOf(text, issues)
	}
	b := binder{
		text: text, scope: scope, info: parsed.NativeRep().SourceInfo(), factory: ast.NewExprFactory(),
		literals: map[int64]ref.Val{},
	}
	b.expr(parsed.NativeRep().Expr(), nil)
	if len(b.problems) > 0 {
		slices.SortStableFunc(b.problems, func(x, y Problem) int { return x.Offset - y.Offset })
		return nil, b.problems
	}
	shape := b.shape()
	if known := c.shapes[shape]; known != nil {
		return &Program{refs: b.refs, cuts: b.cuts, shared: known}, nil
	}
	built, problems := b.build(env, parsed)
	if len(problems) > 0 {
		return nil, problems
	}
	c.shapes[shape] = built
	return &Program{refs: b.refs, cuts: b.cuts, shared: built}, nil
}

// build checks the bound tree, restores the exact literals and makes a program.
func (b *binder) build(env *cel.Env, parsed *cel.Ast) (*shared, []Problem) {
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, problemsOf(b.text, issues)
	}
	ast.PostOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if exact, ok := b.literals[e.ID()]; ok {
			e.SetKindCase(b.factory.NewLiteral(e.ID(), exact))
		}
	}))
	prices := weigh(checked.NativeRep().Expr())
	planned, err := program(env, checked, prices)
	if err != nil {
		return nil, []Problem{{Message: err.Error()}}
	}
	return &shared{program: planned, weights: prices, kind: checked.OutputType(), checked: checked, cuts: b.cuts}, nil
}

// wordField is a field that CEL takes for a word of its own, after what has the field.
var wordField = regexp.MustCompile(`((?:^|[^\w"'.])[A-Za-z_]\w*(?:\.\w+|\[[^\]]*\])*?)\.(in|true|false|null)\b`)

// wordAsField finds such a field in an expression that cannot be parsed.
func wordAsField(text string) []Problem {
	m := wordField.FindStringSubmatchIndex(Code(text))
	if m == nil {
		return nil
	}
	owner := strings.TrimLeftFunc(text[m[2]:m[3]], func(r rune) bool { return r != '_' && !unicode.IsLetter(r) })
	word := text[m[4]:m[5]]
	return []Problem{{
		Offset:  utf8.RuneCountInString(text[:m[4]]),
		Message: fmt.Sprintf("%s is a word of the expression language: write %s[%q]", word, owner, word),
	}}
}

func problemsOf(text string, issues *cel.Issues) []Problem {
	var problems []Problem
	for _, e := range issues.Errors() {
		message, _, _ := strings.Cut(strings.TrimPrefix(e.Message, "Syntax error: "), " expecting {") // a list of all tokens
		message = strings.Replace(message, "mismatched input '<EOF>'", "the expression ends too early", 1)
		problem := Problem{Offset: offsetOf(text, e.Location.Line(), e.Location.Column()), Message: plainly(message)}
		if hint := otherLanguage(message); hint != "" {
			problem.Message = hint
			return []Problem{problem} // what else is wrong follows from it
		}
		problems = append(problems, problem)
	}
	return problems
}

// offsetOf converts a place that CEL gives by line (from 1) and column (from 0) into an
// offset in characters.
func offsetOf(text string, line, column int) int {
	offset := 0
	for i, l := range strings.SplitAfter(text, "\n") {
		if i+1 >= line {
			break
		}
		offset += len([]rune(l))
	}
	return offset + max(column, 0)
}

// directPath recognizes name.field.key.key…, or name.key.key… if the name is itself a
// value; these need no CEL. The path is nil for any other text.
func directPath(text string, scope Scope) (Ref, []string) {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if !isIdentifier(part) {
			return Ref{}, nil
		}
	}
	switch {
	case scope.Whole(parts[0]):
		return Ref{Name: parts[0]}, parts[1:]
	case len(parts) > 1:
		return Ref{Name: parts[0], Field: parts[1]}, parts[2:]
	}
	return Ref{}, nil
}

func isIdentifier(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && !Reserved(s)
}
