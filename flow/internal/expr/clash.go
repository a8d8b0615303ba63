package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// cannotApply says which operator or function cannot be applied to which types.
func cannotApply(function string, kinds []string) string {
	if name, ok := strings.CutPrefix(function, "@"); ok { // in
		function = name
	}
	switch function {
	case "_?_:_":
		if kinds[0] != "a boolean" && kinds[0] != anyKind {
			return fmt.Sprintf("? cannot be applied to %s: the condition must be a boolean", kinds[0])
		}
		return fmt.Sprintf("? : cannot give either %s: both values must have one type", strings.Join(kinds[1:], " or "))
	case "_[_]":
		function = "[ ]"
	default:
		function = strings.Trim(function, "_")
	}
	text := kinds[0]
	for i, kind := range kinds[1:] {
		if i < len(kinds)-2 {
			text += ", " + kind
		} else {
			text += " and " + kind
		}
	}
	return fmt.Sprintf("%s cannot be applied to %s", function, text)
}

// anyKind stands for a type that the checker does not know.
const anyKind = "any value"

// kindOf is the plain name of a type, as CEL spells it.
func kindOf(spelled string) string {
	spelled, _, _ = strings.Cut(spelled, "(")
	switch spelled {
	case "int", "number", "double", "uint":
		return "a number"
	case "string", "list":
		return "a " + spelled
	case "bool":
		return "a boolean"
	case "map":
		return "an object"
	case "null", "null_type":
		return "null"
	case "timestamp", "google.protobuf.Timestamp":
		return "a time"
	case "duration", "google.protobuf.Duration":
		return "a duration"
	case "dyn", "any":
		return anyKind
	case "type":
		return "a type"
	}
	return spelled
}

// kindsOf reads the types of a signature such as (int, list(string)) or string.(int).
func kindsOf(signature string) (kinds []string) {
	depth, from := 0, 0
	for i, c := range signature {
		switch {
		case c == '(':
			if depth++; depth == 1 {
				if i > 0 {
					kinds = append(kinds, kindOf(strings.TrimSuffix(signature[:i], ".")))
				}
				from = i + 1
			}
		case c == ')':
			depth--
		}
		if (c == ',' && depth == 1 || c == ')' && depth == 0) && i > from {
			kinds = append(kinds, kindOf(strings.TrimSpace(signature[from:i])))
			from = i + 1
		}
	}
	return kinds
}

var (
	checkedClash   = regexp.MustCompile(`^found no matching overload for '(\S+)' applied to '(.*)'$`)
	checkedRange   = regexp.MustCompile(`^expression of type '(.*)' cannot be range of a comprehension`)
	checkedBoolean = regexp.MustCompile(`^expected type '(.*)' but found '(.*)'$`)
)

// plainly says in plain words what the type checker found.
func plainly(message string) string {
	if m := checkedClash.FindStringSubmatch(message); m != nil {
		if kinds := kindsOf(m[2]); len(kinds) > 0 {
			return cannotApply(m[1], kinds)
		}
	}
	if m := checkedRange.FindStringSubmatch(message); m != nil {
		return "only a list or an object can be gone through, not " + kindOf(m[1])
	}
	if m := checkedBoolean.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("this must be %s, it is %s", kindOf(m[1]), kindOf(m[2]))
	}
	return message
}

var (
	unknownSign = regexp.MustCompile(`^token recognition error at: '(.)`)
	unknownWord = regexp.MustCompile(`^(?:mismatched|extraneous) input '(and|or|AND|OR)'`)
)

// otherSigns says what is written instead of signs and words that other languages have.
var otherSigns = map[string]string{
	"=": "= is no operator: write == to compare", "&": "& is no operator: write && for and", "|": "| is no operator: write || for or",
	"and": "and is no operator: write &&", "or": "or is no operator: write ||",
	"#": "a comment begins with //", "$": "an expression has no ${ } within it: it is in ${ } as a whole",
	"'": "a string without its closing quote", `"`: "a string without its closing quote",
}

// otherLanguage is what to write instead of what the parser does not know; empty if that is unclear.
func otherLanguage(message string) string {
	for _, pattern := range []*regexp.Regexp{unknownSign, unknownWord} {
		if m := pattern.FindStringSubmatch(message); m != nil {
			return otherSigns[strings.ToLower(m[1])]
		}
	}
	return ""
}

// maxShown bounds the text of a value in a message, in bytes, and that of a message.
const maxShown, maxReason = 100, 2000

func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// planPrice is what it takes to plan a node again, to explain a clash.
const planPrice = 20

func mismatch(sign string, values ...ref.Val) ref.Val {
	kinds := make([]string, len(values))
	for i, v := range values {
		kinds[i] = kindOf(v.Type().TypeName())
	}
	return types.WrapErr(&clash{cannotApply(sign, kinds)})
}

// clash says that types do not fit.
type clash struct{ text string }

func (c *clash) Error() string { return c.text }

// clashed makes a plain error of one of CEL about types that do not fit: what cannot be applied
// to what, and where in the expression. Another error stays as it is.
func (p *Program) clashed(err error, src Source, step *Step) error {
	failed, is := errors.AsType[*types.Err](err)
	if !is {
		return err
	}
	if text := err.Error(); len(text) > maxReason {
		return errors.New(shortened(text, maxReason))
	}
	id, text := failed.NodeID(), failed.Error()
	if own, is := errors.AsType[*clash](err); is {
		text = own.text
	} else if strings.HasPrefix(text, "no such overload") || strings.HasSuffix(text, "expected iterable type") {
		if id, text = p.found(id, src, step); text == "" {
			return err
		}
	} else {
		return err
	}
	place, ok := p.checked.NativeRep().SourceInfo().GetOffsetRange(id)
	if !ok {
		return errors.New(text)
	}
	return fmt.Errorf("%s (column %d of the expression)", text, p.own(int(place.Start))+1)
}

// found says what the call at a node was applied to, or which macro goes through something else
// than a list. CEL's errors name no types and, of a macro, no node. So the expression is evaluated
// again, and what it came to is looked up.
func (p *Program) found(id int64, src Source, step *Step) (node int64, text string) {
	env, err := environment()
	if err != nil {
		return id, ""
	}
	step.spend(p.weights.whole + planPrice*p.weights.count)
	tracked, err := program(env, p.checked, p.weights, cel.EvalOptions(cel.OptTrackState))
	if err != nil {
		return id, ""
	}
	_, details, _ := run(tracked, p.activation(src, step))
	if details == nil || step.err != nil {
		return id, ""
	}
	kind := func(e ast.Expr) string {
		v, ok := details.State().Value(e.ID())
		if !ok || types.IsUnknownOrError(v) {
			return ""
		}
		return kindOf(v.Type().TypeName())
	}
	node = id
	ast.PostOrderVisit(p.checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case e.Kind() == ast.CallKind && e.ID() == id:
			text = applied(e.AsCall(), kind)
		case e.Kind() == ast.ComprehensionKind && id == 0:
			if k := kind(e.AsComprehension().IterRange()); k != "" && k != "a list" && k != "an object" {
				node, text = e.ID(), "only a list or an object can be gone through, not "+k
			}
		}
	}))
	return node, text
}

// applied says what a call was applied to, or "".
func applied(call ast.CallExpr, kind func(ast.Expr) string) string {
	operands := call.Args()
	if call.IsMemberFunction() {
		operands = append([]ast.Expr{call.Target()}, operands...)
	}
	name := call.FunctionName()
	var kinds []string
	for _, operand := range operands {
		k := kind(operand)
		if fits := k == "a boolean" && (name == operators.LogicalAnd || name == operators.LogicalOr); k != "" && !fits {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return cannotApply(name, kinds)
}

// own converts a place in the text of which the shared program was made to one in this text:
// they differ in the lengths of their mentions.
func (p *Program) own(offset int) int {
	moved := offset
	for i, c := range p.shared.cuts {
		if c.offset < offset && i < len(p.cuts) {
			moved += p.cuts[i].length - c.length
		}
	}
	return moved
}
