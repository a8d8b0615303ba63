package expr

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/cockroachdb/apd/v3"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// DivisionDigits is the number of significant digits of a quotient, rounded half to even.
// If an operand has more digits, so does the quotient.
const DivisionDigits = 34

// decimal is a number that is not an int64: it has a fraction, or is out of range. Its
// digits have no trailing zeros.
type decimal struct{ apd.Decimal }

var decimalType = types.NewOpaqueType("number")

// exact keeps every digit; number then checks the limits.
var exact = apd.Context{MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Traps: apd.DefaultTraps}

func (d *decimal) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a decimal is not a %v", t)
}

func (d *decimal) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return decimalType
	}
	return types.NewErr("a decimal cannot be made a %s", t.TypeName())
}

func (d *decimal) Equal(other ref.Val) ref.Val {
	o, ok := other.(*decimal)
	return types.Bool(ok && d.Cmp(&o.Decimal) == 0)
}

func (d *decimal) Type() ref.Type { return decimalType }

func (d *decimal) Value() any { return d.Text('G') }

// price takes the units of an operation on decimals that spans so many digits. Multiplication,
// division and the removal of zeros at the end take the square of that.
func (s *Step) price(units, digits int64) { s.spend(units + digits*digits/1024) }

// span is how many digits two numbers cover together.
func span(x, y *apd.Decimal) int64 {
	first := max(x.NumDigits()+int64(x.Exponent), y.NumDigits()+int64(y.Exponent))
	return first - int64(min(x.Exponent, y.Exponent))
}

// parseNumber is parseNumber at its price.
func (s *Step) parseNumber(text string) ref.Val {
	if len(text) > len("-9223372036854775808") || strings.ContainsAny(text, ".e") {
		s.price(decimalPrice, int64(len(text)))
	}
	return parseNumber(text)
}

// parseNumber reads a number in its canonical spelling.
func parseNumber(text string) ref.Val {
	if !strings.ContainsAny(text, ".e") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return types.Int(n)
		}
	}
	d := &decimal{}
	if _, _, err := d.SetString(text); err != nil {
		return types.NewErr("not a number: %s", text)
	}
	return number(&d.Decimal)
}

// number brings a result to its one form and checks the limits of canonical payloads. Too
// many digits are an error; they are never rounded away.
func number(d *apd.Decimal) ref.Val {
	if d.Form != apd.Finite {
		return types.NewErr("the result is not a number")
	}
	if d.IsZero() {
		return types.Int(0)
	}
	d.Reduce(d)
	if d.Exponent >= 0 && d.NumDigits()+int64(d.Exponent) <= 19 {
		if n, err := d.Int64(); err == nil {
			return types.Int(n)
		}
	}
	if d.NumDigits() > canonical.MaxDigits {
		return types.NewErr("the result has more than %d digits; use round", canonical.MaxDigits)
	}
	if first := d.NumDigits() + int64(d.Exponent) - 1; first > canonical.MaxExponent || first < -canonical.MaxExponent {
		return types.NewErr("the result is beyond 10^±%d", canonical.MaxExponent)
	}
	return &decimal{*d}
}

// toDecimal gives the value of a number for arithmetic.
func toDecimal(v ref.Val) (*apd.Decimal, bool) {
	switch n := v.(type) {
	case types.Int:
		return apd.New(int64(n), 0), true
	case *decimal:
		return &n.Decimal, true
	}
	return nil, false
}

func bothDecimal(a, b ref.Val) (x, y *apd.Decimal, ok bool) {
	x, okX := toDecimal(a)
	y, okY := toDecimal(b)
	return x, y, okX && okY
}

// addNumbers, subtractNumbers and multiplyNumbers are exact.
func (s *Step) addNumbers(a, b ref.Val) ref.Val {
	if m, ok := a.(types.Int); ok {
		if n, ok := b.(types.Int); ok {
			if sum := m + n; (sum > m) == (n > 0) {
				return sum
			}
		}
	}
	return s.exactly(exact.Add, "+", a, b)
}

func (s *Step) subtractNumbers(a, b ref.Val) ref.Val {
	if m, ok := a.(types.Int); ok {
		if n, ok := b.(types.Int); ok {
			if difference := m - n; (difference < m) == (n > 0) {
				return difference
			}
		}
	}
	return s.exactly(exact.Sub, "-", a, b)
}

func (s *Step) multiplyNumbers(a, b ref.Val) ref.Val {
	if m, ok := a.(types.Int); ok && m > math.MinInt32 && m < math.MaxInt32 {
		if n, ok := b.(types.Int); ok && n > math.MinInt32 && n < math.MaxInt32 {
			return m * n
		}
	}
	return s.exactly(exact.Mul, "*", a, b)
}

func (s *Step) exactly(op func(d, x, y *apd.Decimal) (apd.Condition, error), sign string, a, b ref.Val) ref.Val {
	x, y, ok := bothDecimal(a, b)
	switch {
	case !ok:
		return mismatch(sign, a, b)
	case sign == "*":
		s.price(decimalPrice, x.NumDigits()+y.NumDigits())
	default:
		s.price(decimalPrice, span(x, y))
	}
	var result apd.Decimal
	if _, err := op(&result, x, y); err != nil {
		return types.NewErr("%s %s %s: %v", x, sign, y, err)
	}
	return number(&result)
}

// divideNumbers gives the quotient, 7/2 = 3.5, not its integer part, because 7 and 7.0
// are the same number in JSON.
func (s *Step) divideNumbers(a, b ref.Val) ref.Val {
	x, y, ok := bothDecimal(a, b)
	switch {
	case !ok:
		return mismatch("/", a, b)
	case y.IsZero():
		return types.NewErr("division by zero")
	}
	context := exact
	context.Precision = uint32(max(DivisionDigits, x.NumDigits(), y.NumDigits()))
	s.price(quotientPrice, 2*int64(context.Precision))
	context.Rounding = apd.RoundHalfEven
	var result apd.Decimal
	if _, err := context.Quo(&result, x, y); err != nil {
		return types.NewErr("%s / %s: %v", x, y, err)
	}
	return number(&result)
}

// remainNumbers gives a − b × trunc(a/b), exactly; its sign is the dividend's.
func (s *Step) remainNumbers(a, b ref.Val) ref.Val {
	x, y, ok := bothDecimal(a, b)
	switch {
	case !ok:
		return mismatch("%", a, b)
	case y.IsZero():
		return types.NewErr("remainder of a division by zero")
	}
	s.price(quotientPrice, 2*span(x, y))
	exponent := min(x.Exponent, y.Exponent)
	remainder := new(big.Int).Rem(atExponent(x, exponent), atExponent(y, exponent))
	return number(apd.NewWithBigInt(new(apd.BigInt).SetMathBigInt(remainder), exponent))
}

// atExponent returns d as an integer multiple of 10^exponent.
func atExponent(d *apd.Decimal, exponent int32) *big.Int {
	shift := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.Exponent-exponent)), nil)
	n := shift.Mul(shift, d.Coeff.MathBigInt())
	if d.Negative {
		n.Neg(n)
	}
	return n
}

func (s *Step) negateNumber(v, _ ref.Val) ref.Val { return s.subtractNumbers(types.Int(0), v) }

// compareNumbers returns −1, 0 or 1.
func (s *Step) compareNumbers(a, b ref.Val) (int, bool) {
	if m, ok := a.(types.Int); ok {
		if n, ok := b.(types.Int); ok {
			return cmp.Compare(m, n), true
		}
	}
	x, y, ok := bothDecimal(a, b)
	if !ok {
		return 0, false
	}
	s.price(1, min(x.NumDigits(), y.NumDigits()))
	return x.Cmp(y), true
}

// appendNumber writes the canonical spelling of a number.
func (s *Step) appendNumber(dst []byte, v ref.Val) ([]byte, error) {
	switch n := v.(type) {
	case types.Int:
		return canonical.AppendInt(dst, int64(n)), nil
	case *decimal:
		s.price(decimalPrice, n.NumDigits())
		text, err := canonical.Payload(n.Append(nil, 'E'))
		return append(dst, text...), err
	}
	return dst, fmt.Errorf("%s is not a number", v.Type().TypeName())
}

// typeName is the name of a value's type in messages.
func typeName(v ref.Val) string { return kindOf(v.Type().TypeName()) }
