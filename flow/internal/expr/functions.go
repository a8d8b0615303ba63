package expr

import (
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/cockroachdb/apd/v3"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// MaxPlaces bounds the second argument of round, in both directions.
const MaxPlaces = 100

// excluded are functions of CEL's standard library that are declared again for exact
// numbers, or left out because they make other numbers.
var excluded = []string{
	operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
	operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	"int", "uint", "double", "string",
}

// operation is an operator or a function with one or two arguments, at its price; b is nil if
// there is one. A call costs more than that, see weights.
type operation func(s *Step, a, b ref.Val) ref.Val

// operations are all whose price grows with their arguments. A call runs these, and never what
// the environment has bound.
var operations = map[string]operation{
	operators.Add: (*Step).add, operators.Subtract: (*Step).subtract, operators.Multiply: (*Step).multiplyNumbers,
	operators.Divide: (*Step).divideNumbers, operators.Modulo: (*Step).remainNumbers,
	operators.Negate:        (*Step).negateNumber,
	operators.Less:          comparison("<", func(c int) bool { return c < 0 }),
	operators.LessEquals:    comparison("<=", func(c int) bool { return c <= 0 }),
	operators.Greater:       comparison(">", func(c int) bool { return c > 0 }),
	operators.GreaterEquals: comparison(">=", func(c int) bool { return c >= 0 }),
	operators.Equals:        func(s *Step, a, b ref.Val) ref.Val { return types.Bool(s.equal(a, b)) },
	operators.NotEquals:     func(s *Step, a, b ref.Val) ref.Val { return types.Bool(!s.equal(a, b)) },
	operators.In:            (*Step).contained,
	"int":                   (*Step).toInt, "number": (*Step).toNumber, "string": (*Step).toString,
	"round": (*Step).round, "floor": quantize(apd.RoundFloor), "ceil": quantize(apd.RoundCeiling),
	"abs": (*Step).abs, "sum": (*Step).sum, overloads.Size: (*Step).size,
	overloads.Contains:   within("contains", strings.Contains),
	overloads.StartsWith: within("startsWith", strings.HasPrefix),
	overloads.EndsWith:   within("endsWith", strings.HasSuffix),
	overloads.Matches:    (*Step).matches,
}

// result is an overload's signature: its arguments, then its result.
type result []*cel.Type

// declare tells the type checker of a function of operations.
func declare(name string, signatures map[string]result) cel.EnvOption {
	options := []cel.FunctionOpt{cel.SingletonFunctionBinding(func(...ref.Val) ref.Val {
		return types.NewErr("%s is not bound", name)
	})}
	for id, signature := range signatures {
		last := len(signature) - 1
		options = append(options, cel.Overload(id, signature[:last], signature[last]))
	}
	return cel.Function(name, options...)
}

// functions declares the replacements of the excluded functions.
func functions() []cel.EnvOption {
	num, text, data := cel.IntType, cel.StringType, cel.BytesType
	at, span := cel.TimestampType, cel.DurationType
	list := cel.ListType(cel.TypeParamType("A"))
	declared := []cel.EnvOption{
		declare(operators.Add, map[string]result{
			"add_number": {num, num, num}, "add_string": {text, text, text}, "add_bytes": {data, data, data}, "add_list": {list, list, list},
			"add_time": {at, span, at}, "add_to_time": {span, at, at}, "add_duration": {span, span, span},
		}),
		declare(operators.Subtract, map[string]result{
			"subtract_number": {num, num, num}, "subtract_times": {at, at, span}, "subtract_from_time": {at, span, at}, "subtract_duration": {span, span, span},
		}),
		declare(operators.Multiply, map[string]result{"multiply_number": {num, num, num}}),
		declare(operators.Divide, map[string]result{"divide_number": {num, num, num}}),
		declare(operators.Modulo, map[string]result{"modulo_number": {num, num, num}}),
		declare(operators.Negate, map[string]result{"negate_number": {num, num}}),
		declare("int", map[string]result{"int_number": {num, num}, "int_string": {text, num}, "int_time": {at, num}}),
		declare("number", map[string]result{"number_number": {num, num}, "number_string": {text, num}}),
		declare("string", map[string]result{
			"string_number": {num, text}, "string_string": {text, text}, "string_bool": {cel.BoolType, text}, "string_bytes": {data, text},
			"string_time": {at, text}, "string_duration": {span, text},
		}),
		declare("round", map[string]result{"round_number": {num, num, num}}),
		declare("floor", map[string]result{"floor_number": {num, num}}),
		declare("ceil", map[string]result{"ceil_number": {num, num}}),
		declare("abs", map[string]result{"abs_number": {num, num}}),
		declare("sum", map[string]result{"sum_list": {cel.ListType(cel.DynType), num}}),
	}
	for _, sign := range []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals} {
		signatures := map[string]result{}
		for _, t := range []*cel.Type{num, text, data, at, span, cel.BoolType} {
			signatures[strings.Trim(sign, "_")+"_"+t.String()] = result{t, t, cel.BoolType}
		}
		declared = append(declared, declare(sign, signatures))
	}
	return declared
}

func isNumber(v ref.Val) bool {
	switch v.(type) {
	case types.Int, *decimal:
		return true
	}
	return false
}

// length is how many bytes a string or bytes have; 0 for other values.
func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

func (s *Step) add(a, b ref.Val) ref.Val {
	if isNumber(a) {
		return s.addNumbers(a, b)
	}
	if list, ok := a.(traits.Lister); ok {
		return s.addLists(list, b)
	}
	adder, ok := a.(traits.Adder)
	if !ok || isNumber(b) {
		return mismatch("+", a, b)
	}
	s.spendFor(length(a)+length(b), textPerUnit)
	return adder.Add(b)
}

// addLists copies both lists, so that no list is a tree of others. The list that a macro makes
// takes the elements in.
func (s *Step) addLists(a traits.Lister, b ref.Val) ref.Val {
	other, ok := b.(traits.Lister)
	if !ok {
		return mismatch("+", a, b)
	}
	if growing, ok := a.(traits.MutableLister); ok {
		s.spendFor(sizeOf(other), slotsPerUnit)
		return growing.Add(b)
	}
	s.spendFor(sizeOf(a)+sizeOf(other), slotsPerUnit)
	return types.NewRefValList(types.DefaultTypeAdapter, slices.Concat(elements(a), elements(other)))
}

func sizeOf(v traits.Sizer) int { return int(v.Size().(types.Int)) }

func (s *Step) subtract(a, b ref.Val) ref.Val {
	if isNumber(a) {
		return s.subtractNumbers(a, b)
	}
	subtractor, ok := a.(traits.Subtractor)
	if !ok || isNumber(b) {
		return mismatch("-", a, b)
	}
	return subtractor.Subtract(b)
}

func comparison(sign string, holds func(int) bool) operation {
	return func(s *Step, a, b ref.Val) ref.Val {
		if order, ok := s.compareNumbers(a, b); ok {
			return types.Bool(holds(order))
		}
		comparer, ok := a.(traits.Comparer)
		if !ok || isNumber(a) || isNumber(b) {
			return mismatch(sign, a, b)
		}
		s.spendFor(min(length(a), length(b)), samePerUnit)
		order, ok := comparer.Compare(b).(types.Int)
		if !ok {
			return mismatch(sign, a, b)
		}
		return types.Bool(holds(int(order)))
	}
}

// toNumber reads a string as a JSON number.
func (s *Step) toNumber(v, _ ref.Val) ref.Val {
	text, ok := v.(types.String)
	switch {
	case isNumber(v):
		return v
	case !ok:
		return mismatch("number", v)
	}
	s.spendFor(len(text), shownPerUnit)
	spelled, err := canonical.Payload([]byte(text))
	if err != nil || spelled[0] != '-' && (spelled[0] < '0' || spelled[0] > '9') {
		return types.NewErr("%q is not a number", shortened(string(text), maxShown))
	}
	return s.parseNumber(string(spelled))
}

// toInt is the integer part of a number, or of the number in a string; for a time, the
// seconds since 1970.
func (s *Step) toInt(v, _ ref.Val) ref.Val {
	if at, ok := v.(types.Timestamp); ok {
		return at.ConvertToType(types.IntType)
	}
	n := s.toNumber(v, nil)
	d, ok := n.(*decimal)
	if !ok {
		return n
	}
	return s.rounded(&d.Decimal, 0, apd.RoundDown)
}

func (s *Step) toString(v, _ ref.Val) ref.Val {
	if isNumber(v) {
		text, err := s.appendNumber(nil, v)
		if err != nil {
			return types.WrapErr(err)
		}
		return types.String(text)
	}
	switch v.(type) {
	case types.String, types.Bytes, types.Bool, types.Timestamp, types.Duration:
		s.spendFor(length(v), textPerUnit)
		return v.ConvertToType(types.StringType)
	}
	return mismatch("string", v)
}

// round returns the nearest number with that many decimal places. Halves are rounded away
// from zero, as for prices.
func (s *Step) round(v, places ref.Val) ref.Val {
	x, ok := toDecimal(v)
	n, okPlaces := places.(types.Int)
	switch {
	case !ok || !okPlaces:
		return mismatch("round", v, places)
	case n > MaxPlaces || n < -MaxPlaces:
		return types.NewErr("round takes up to %d places", MaxPlaces)
	}
	return s.rounded(x, -int32(n), apd.RoundHalfUp)
}

func quantize(rounding apd.Rounder) operation {
	return func(s *Step, v, _ ref.Val) ref.Val {
		x, ok := toDecimal(v)
		if !ok {
			return types.NewErr("%s is not a number", typeName(v))
		}
		return s.rounded(x, 0, rounding)
	}
}

// rounded rounds x to a multiple of a power of ten.
func (s *Step) rounded(x *apd.Decimal, exponent int32, rounding apd.Rounder) ref.Val {
	s.price(decimalPrice, x.NumDigits()+max(0, int64(exponent)-int64(x.Exponent)))
	if x.Exponent >= exponent {
		return number(new(apd.Decimal).Set(x))
	}
	context := exact
	context.Precision, context.Rounding = 3*canonical.MaxDigits, rounding
	var result apd.Decimal
	if _, err := context.Quantize(&result, x, exponent); err != nil {
		return types.NewErr("rounding %s: %v", x, err)
	}
	return number(&result)
}

func (s *Step) abs(v, _ ref.Val) ref.Val {
	x, ok := toDecimal(v)
	if !ok {
		return types.NewErr("%s is not a number", typeName(v))
	}
	s.price(decimalPrice, x.NumDigits())
	return number(new(apd.Decimal).Abs(x))
}

// sum adds a list of numbers; an empty list gives 0.
func (s *Step) sum(v, _ ref.Val) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return mismatch("sum", v)
	}
	var total ref.Val = types.Int(0)
	for i := range sizeOf(list) {
		s.spend(1)
		if total = s.addNumbers(total, element(list, i)); types.IsError(total) {
			break
		}
	}
	return total
}
