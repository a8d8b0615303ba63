package expr

import (
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/cockroachdb/apd/v3"

	"github.com/quipu-journal/quipu/canonical"
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

// result is an overload's signature: its arguments, then its result.
type result []*cel.Type

func declare(name string, binding cel.FunctionOpt, overloads map[string]result) cel.EnvOption {
	options := []cel.FunctionOpt{binding}
	for id, signature := range overloads {
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
		declare(operators.Add, cel.SingletonBinaryBinding(add), map[string]result{
			"add_number": {num, num, num}, "add_string": {text, text, text}, "add_bytes": {data, data, data}, "add_list": {list, list, list},
			"add_time": {at, span, at}, "add_to_time": {span, at, at}, "add_duration": {span, span, span},
		}),
		declare(operators.Subtract, cel.SingletonBinaryBinding(subtract), map[string]result{
			"subtract_number": {num, num, num}, "subtract_times": {at, at, span}, "subtract_from_time": {at, span, at}, "subtract_duration": {span, span, span},
		}),
		declare(operators.Multiply, cel.SingletonBinaryBinding(multiplyNumbers), map[string]result{"multiply_number": {num, num, num}}),
		declare(operators.Divide, cel.SingletonBinaryBinding(divideNumbers), map[string]result{"divide_number": {num, num, num}}),
		declare(operators.Modulo, cel.SingletonBinaryBinding(remainNumbers), map[string]result{"modulo_number": {num, num, num}}),
		declare(operators.Negate, cel.SingletonUnaryBinding(negateNumber), map[string]result{"negate_number": {num, num}}),
		declare("int", cel.SingletonUnaryBinding(toInt), map[string]result{"int_number": {num, num}, "int_string": {text, num}, "int_time": {at, num}}),
		declare("number", cel.SingletonUnaryBinding(toNumber), map[string]result{"number_number": {num, num}, "number_string": {text, num}}),
		declare("string", cel.SingletonUnaryBinding(toString), map[string]result{
			"string_number": {num, text}, "string_string": {text, text}, "string_bool": {cel.BoolType, text}, "string_bytes": {data, text},
			"string_time": {at, text}, "string_duration": {span, text},
		}),
		declare("round", cel.SingletonBinaryBinding(round), map[string]result{"round_number": {num, num, num}}),
		declare("floor", cel.SingletonUnaryBinding(quantize(apd.RoundFloor)), map[string]result{"floor_number": {num, num}}),
		declare("ceil", cel.SingletonUnaryBinding(quantize(apd.RoundCeiling)), map[string]result{"ceil_number": {num, num}}),
		declare("abs", cel.SingletonUnaryBinding(abs), map[string]result{"abs_number": {num, num}}),
		declare("sum", cel.SingletonUnaryBinding(sum), map[string]result{"sum_list": {cel.ListType(cel.DynType), num}}),
	}
	for sign, holds := range map[string]func(int) bool{
		operators.Less: func(c int) bool { return c < 0 }, operators.LessEquals: func(c int) bool { return c <= 0 },
		operators.Greater: func(c int) bool { return c > 0 }, operators.GreaterEquals: func(c int) bool { return c >= 0 },
	} {
		overloads := map[string]result{}
		for _, t := range []*cel.Type{num, text, data, at, span, cel.BoolType} {
			overloads[strings.Trim(sign, "_")+"_"+t.String()] = result{t, t, cel.BoolType}
		}
		declared = append(declared, declare(sign, cel.SingletonBinaryBinding(comparison(sign, holds)), overloads))
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

func add(a, b ref.Val) ref.Val {
	if isNumber(a) {
		return addNumbers(a, b)
	}
	adder, ok := a.(traits.Adder)
	if !ok || isNumber(b) {
		return mismatch("+", a, b)
	}
	return adder.Add(b)
}

func subtract(a, b ref.Val) ref.Val {
	if isNumber(a) {
		return subtractNumbers(a, b)
	}
	subtractor, ok := a.(traits.Subtractor)
	if !ok || isNumber(b) {
		return mismatch("-", a, b)
	}
	return subtractor.Subtract(b)
}

func comparison(name string, holds func(int) bool) func(a, b ref.Val) ref.Val {
	sign := strings.Trim(name, "_")
	return func(a, b ref.Val) ref.Val {
		if order, ok := compareNumbers(a, b); ok {
			return types.Bool(holds(order))
		}
		comparer, ok := a.(traits.Comparer)
		if !ok || isNumber(a) || isNumber(b) {
			return mismatch(sign, a, b)
		}
		order, ok := comparer.Compare(b).(types.Int)
		if !ok {
			return mismatch(sign, a, b)
		}
		return types.Bool(holds(int(order)))
	}
}

// toNumber reads a string as a JSON number.
func toNumber(v ref.Val) ref.Val {
	text, ok := v.(types.String)
	switch {
	case isNumber(v):
		return v
	case !ok:
		return mismatch("number", v)
	}
	spelled, err := canonical.Payload([]byte(text))
	if err != nil || spelled[0] != '-' && (spelled[0] < '0' || spelled[0] > '9') {
		return types.NewErr("%q is not a number", string(text))
	}
	return parseNumber(string(spelled))
}

// toInt is the integer part of a number, or of the number in a string; for a time, the
// seconds since 1970.
func toInt(v ref.Val) ref.Val {
	if at, ok := v.(types.Timestamp); ok {
		return at.ConvertToType(types.IntType)
	}
	n := toNumber(v)
	d, ok := n.(*decimal)
	if !ok {
		return n
	}
	return rounded(&d.Decimal, 0, apd.RoundDown)
}

func toString(v ref.Val) ref.Val {
	if isNumber(v) {
		text, err := appendNumber(nil, v)
		if err != nil {
			return types.WrapErr(err)
		}
		return types.String(text)
	}
	return v.ConvertToType(types.StringType)
}

// round returns the nearest number with that many decimal places. Halves are rounded away
// from zero, as for prices.
func round(v, places ref.Val) ref.Val {
	x, ok := toDecimal(v)
	n, okPlaces := places.(types.Int)
	switch {
	case !ok || !okPlaces:
		return mismatch("round", v, places)
	case n > MaxPlaces || n < -MaxPlaces:
		return types.NewErr("round takes up to %d places", MaxPlaces)
	}
	return rounded(x, -int32(n), apd.RoundHalfUp)
}

func quantize(rounding apd.Rounder) func(ref.Val) ref.Val {
	return func(v ref.Val) ref.Val {
		x, ok := toDecimal(v)
		if !ok {
			return types.NewErr("%s is not a number", typeName(v))
		}
		return rounded(x, 0, rounding)
	}
}

// rounded rounds x to a multiple of a power of ten.
func rounded(x *apd.Decimal, exponent int32, rounding apd.Rounder) ref.Val {
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

func abs(v ref.Val) ref.Val {
	x, ok := toDecimal(v)
	if !ok {
		return types.NewErr("%s is not a number", typeName(v))
	}
	return number(new(apd.Decimal).Abs(x))
}

// sum adds a list of numbers; an empty list gives 0.
func sum(v ref.Val) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return mismatch("sum", v)
	}
	var total ref.Val = types.Int(0)
	for it := list.Iterator(); it.HasNext() == types.True && !types.IsError(total); {
		total = addNumbers(total, it.Next())
	}
	return total
}
