package expr_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/flow/internal/expr"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// numbers draws amounts as in payments, and the edges of int64.
func numbers() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?`),
		rapid.StringMatching(`-?[1-9][0-9]{15,30}(\.[0-9]{1,20})?`),
		rapid.StringMatching(`-?[1-9](\.[0-9]{1,10})?e-?[1-9][0-9]`),
		rapid.SampledFrom([]string{"9223372036854775807", "-9223372036854775808", "9223372036854775808", "-1", "1", "0", "0.1", "4294967296", "-4294967296"}),
	)
}

func evaluate(t require.TestingT, source, x, y string) (string, error) {
	program, problems := expr.NewCompiler().Compile(source, world{"x.output": x, "y.output": y})
	require.Empty(t, problems)
	got, err := program.AppendJSON(nil, world{"x.output": x, "y.output": y})
	return string(got), err
}

// spell gives the canonical spelling of an apd number.
func spell(t require.TestingT, d *apd.Decimal) string {
	text, err := canonical.Payload([]byte(d.Text('E')))
	require.NoError(t, err)
	return string(text)
}

func parse(t require.TestingT, text string) *apd.Decimal {
	d, _, err := apd.NewFromString(text)
	require.NoError(t, err)
	return d
}

// Sums, differences and products equal those of apd, to the last digit, whether an
// operand is a variable or a literal.
func TestArithmeticIsExact(t *testing.T) {
	t.Parallel()
	context := apd.BaseContext
	operations := map[string]func(d, x, y *apd.Decimal) (apd.Condition, error){
		"+": context.Add, "-": context.Sub, "*": context.Mul,
	}
	rapid.Check(t, func(t *rapid.T) {
		x, y := numbers().Draw(t, "x"), numbers().Draw(t, "y")
		for sign, operation := range operations {
			var want apd.Decimal
			_, err := operation(&want, parse(t, x), parse(t, y))
			require.NoError(t, err)
			got, err := evaluate(t, "x.output "+sign+" y.output", x, y)
			require.NoError(t, err)
			require.Equal(t, spell(t, &want), got, "%s %s %s", x, sign, y)
			if want.IsZero() || y[0] == '9' || len(y) > 18 { // a whole literal beyond int64 is refused
				continue
			}
			got, err = evaluate(t, "x.output "+sign+" "+y, x, y)
			require.NoError(t, err)
			require.Equal(t, spell(t, &want), got, "%s %s literal %s", x, sign, y)
		}
	})
}

// A quotient times the divisor is the dividend except for its last digits; quotient and
// remainder agree.
func TestDivision(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x, y := numbers().Draw(t, "x"), numbers().Draw(t, "y")
		if parse(t, y).IsZero() {
			_, err := evaluate(t, "x.output / y.output", x, y)
			require.ErrorContains(t, err, "division by zero")
			return
		}
		text, err := evaluate(t, "x.output / y.output", x, y)
		require.NoError(t, err)
		quotient, ok := new(big.Rat).SetString(text)
		require.True(t, ok)
		dividend, _ := new(big.Rat).SetString(x)
		divisor, _ := new(big.Rat).SetString(y)
		exact := new(big.Rat).Quo(dividend, divisor)
		gap := new(big.Rat).Abs(new(big.Rat).Sub(exact, quotient))
		bound := new(big.Rat).Mul(new(big.Rat).Abs(exact), big.NewRat(1, 1))
		bound.Mul(bound, new(big.Rat).SetFrac(big.NewInt(1),
			new(big.Int).Exp(big.NewInt(10), big.NewInt(expr.DivisionDigits-1), nil)))
		require.LessOrEqual(t, gap.Cmp(bound), 0, "%s / %s = %s", x, y, text)

		text, err = evaluate(t, "x.output % y.output", x, y)
		require.NoError(t, err)
		remainder, _ := new(big.Rat).SetString(text)
		whole := new(big.Rat).Quo(new(big.Rat).Sub(dividend, remainder), divisor)
		require.True(t, whole.IsInt(), "%s %% %s = %s", x, y, text)
		require.Negative(t, new(big.Rat).Abs(remainder).Cmp(new(big.Rat).Abs(divisor)))
		require.GreaterOrEqual(t, remainder.Sign()*dividend.Sign(), 0)
	})
}

// Comparison and equality are by value, whatever the form of a number.
func TestComparison(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x, y := numbers().Draw(t, "x"), numbers().Draw(t, "y")
		order := parse(t, x).Cmp(parse(t, y))
		want := fmt.Sprintf("[%t,%t,%t,%t,%t,%t]", order < 0, order <= 0, order == 0, order != 0, order >= 0, order > 0)
		got, err := evaluate(t,
			"[x.output < y.output, x.output <= y.output, x.output == y.output, x.output != y.output, x.output >= y.output, x.output > y.output]", x, y)
		require.NoError(t, err)
		require.Equal(t, want, got, "%s and %s", x, y)
	})
}
