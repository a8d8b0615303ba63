package expr

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// reserved are the words that CEL does not allow as names.
var reserved = []string{
	"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop", "namespace",
	"null", "package", "return", "true", "var", "void", "while",
}

var typeNames = []string{"bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "number", "string", "type", "uint"}

// Reserved says that a word has a meaning of its own in expressions, so that nothing can
// have it as its name.
func Reserved(word string) bool { return slices.Contains(reserved, word) }

// TypeName says that a word is the name of a type in expressions.
func TypeName(word string) bool { return slices.Contains(typeNames, word) }

func librarySubset() *env.LibrarySubset {
	subset := env.NewLibrarySubset()
	for _, name := range excluded {
		subset.AddExcludedFunctions(env.NewFunction(name))
	}
	return subset
}

// binder walks a parsed expression, collects its mentions and replaces them by slots.
type binder struct {
	text     string
	runes    []rune
	scope    Scope
	info     *ast.SourceInfo
	factory  ast.ExprFactory
	refs     []Ref
	cuts     []cut
	literals map[int64]ref.Val
	nesting  int // of lists, objects and macros around what is bound
	problems []Problem
}

// cut is the place of a mention in the text.
type cut struct {
	offset int
	length int
	slot   string
}

func (b *binder) problem(e ast.Expr, text, format string, args ...any) {
	b.problems = append(b.problems, Problem{Offset: b.offset(e), Text: text, Message: fmt.Sprintf(format, args...)})
}

func (b *binder) offset(e ast.Expr) int {
	r, _ := b.info.GetOffsetRange(e.ID())
	return int(r.Start)
}

// expr binds a tree; bound are the variables of the surrounding macros.
func (b *binder) expr(e ast.Expr, bound []string) {
	switch e.Kind() {
	case ast.IdentKind:
		b.ident(e, bound)
	case ast.SelectKind:
		b.selection(e, bound)
	case ast.LiteralKind:
		b.literal(e)
	case ast.CallKind:
		b.call(e, bound)
	case ast.ListKind, ast.MapKind, ast.ComprehensionKind:
		if b.nesting++; b.nesting > MaxNesting {
			b.problem(e, "", "lists, objects and macros are nested deeper than %d", MaxNesting)
		} else {
			b.nest(e, bound)
		}
		b.nesting--
	case ast.StructKind:
		b.problem(e, e.AsStruct().TypeName(), "there are no message types")
	}
}

// nest binds what contains other values or goes through them.
func (b *binder) nest(e ast.Expr, bound []string) {
	switch e.Kind() {
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			b.expr(element, bound)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			key := entry.AsMapEntry().Key()
			if key.Kind() == ast.LiteralKind && key.AsLiteral().Type() != types.StringType {
				b.problem(key, "", "a key must be a string")
			}
			b.expr(key, bound)
			b.expr(entry.AsMapEntry().Value(), bound)
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		b.expr(c.IterRange(), bound)
		b.expr(c.AccuInit(), bound)
		inner := append(slices.Clone(bound), c.IterVar(), c.AccuVar())
		b.expr(c.LoopCondition(), inner)
		b.expr(c.LoopStep(), inner)
		b.expr(c.Result(), inner)
	}
}

// ident handles a name without a field.
func (b *binder) ident(e ast.Expr, bound []string) {
	name := e.AsIdent()
	switch {
	case slices.Contains(bound, name) || TypeName(name) && name != "double" && name != "uint":
	case b.scope.Whole(name):
		b.mention(e, e, Ref{Name: name})
	case b.scope.Known(name):
		b.problem(e, name, "%s stands for no value by itself; name one of its fields", name)
	default:
		b.problem(e, name, "unknown name %s", name)
	}
}

func (b *binder) selection(e ast.Expr, bound []string) {
	s := e.AsSelect()
	operand := s.Operand()
	if operand.Kind() != ast.IdentKind || slices.Contains(bound, operand.AsIdent()) ||
		b.scope.Whole(operand.AsIdent()) {
		b.expr(operand, bound)
		return
	}
	mention := Ref{Name: operand.AsIdent(), Field: s.FieldName()}
	if s.IsTestOnly() && b.scope.Mention(mention) == "" {
		b.problem(operand, mention.String(), "%s is always there; has() is for the keys within it", mention)
		return
	}
	b.mention(e, operand, mention)
}

// mention replaces e, which begins with the name at operand, by a slot.
func (b *binder) mention(e, operand ast.Expr, mention Ref) {
	if reason := b.scope.Mention(mention); reason != "" {
		b.problem(operand, mention.String(), "%s", reason)
		return
	}
	i := slices.Index(b.refs, mention)
	if i < 0 {
		if len(b.refs) == MaxMentions {
			b.problem(e, "", "more than %d mentions in one expression", MaxMentions)
			return
		}
		i = len(b.refs)
		b.refs = append(b.refs, mention)
	}
	slot := slotName(i)
	if b.scope.IsTime(mention) {
		slot = timeSlot(i)
	}
	offset := b.offset(operand)
	if length := b.mentionLength(offset, mention); length > 0 && !slices.ContainsFunc(b.cuts, func(c cut) bool {
		return c.offset == offset
	}) {
		b.cuts = append(b.cuts, cut{offset: offset, length: length, slot: slot})
	}
	e.SetKindCase(b.factory.NewIdent(e.ID(), slot))
}

// mentionLength is the length of the mention at offset, in characters; 0 if it is spelled
// with white space.
func (b *binder) mentionLength(offset int, mention Ref) int {
	text := mention.String()
	if offset+len(text) > len(b.characters()) || string(b.runes[offset:offset+len(text)]) != text {
		return 0
	}
	return len(text)
}

// characters is the text; places in it count characters.
func (b *binder) characters() []rune {
	if b.runes == nil {
		b.runes = []rune(b.text)
	}
	return b.runes
}

// shape is the text with slots in place of mentions: expressions of one shape share a
// program. A mention that contains white space stays in the text, which only makes the
// shape less common.
func (b *binder) shape() string {
	slices.SortFunc(b.cuts, func(x, y cut) int { return x.offset - y.offset })
	var shape strings.Builder
	from := 0
	for _, c := range b.cuts {
		shape.WriteString(string(b.runes[from:c.offset]))
		shape.WriteString(c.slot)
		from = c.offset + c.length
	}
	if from == 0 {
		return b.text
	}
	shape.WriteString(string(b.runes[from:]))
	return shape.String()
}

// literal notes the exact value of a literal such as 0.1 and replaces it by an integer,
// because the type checker knows all numbers as int.
func (b *binder) literal(e ast.Expr) {
	switch e.AsLiteral().(type) {
	case types.Uint:
		b.problem(e, "", "numbers have one type; write it without u")
	case types.Double:
		text := numberAt(b.characters()[b.offset(e):])
		spelled, err := canonical.Payload([]byte(text))
		if err != nil {
			b.problem(e, text, "not a number within the limits")
			return
		}
		b.literals[e.ID()] = parseNumber(string(spelled))
		e.SetKindCase(b.factory.NewLiteral(e.ID(), types.Int(0)))
	}
}

// numberAt takes the literal at the start of a text, including a leading minus, and spells it as
// JSON.
func numberAt(text []rune) string {
	literal := string(text)
	sign := ""
	if unsigned, negative := strings.CutPrefix(literal, "-"); negative {
		sign = "-"
		for literal = strings.TrimLeft(unsigned, " \t\r\n\f"); strings.HasPrefix(literal, "//"); literal = strings.TrimLeft(literal,
			" \t\r\n\f") {
			end, _ := tokenEnd(literal, 0)
			literal = literal[end:]
		}
	}
	literal = literal[:numberLength(literal)]
	if strings.HasPrefix(literal, ".") {
		literal = "0" + literal
	}
	return sign + literal
}

func (b *binder) call(e ast.Expr, bound []string) {
	c := e.AsCall()
	if name := c.FunctionName(); name == "double" || name == "uint" {
		b.problem(e, name, "there is no %s: numbers are exact; use number or int", name)
	}
	if c.IsMemberFunction() {
		b.expr(c.Target(), bound)
	}
	for _, argument := range c.Args() {
		b.expr(argument, bound)
	}
}
