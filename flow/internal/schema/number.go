package schema

import (
	"cmp"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// limit is a number of a schema.
type limit struct {
	rat      *big.Rat
	num, den int64 // if both are small; otherwise 0, 0
	size     int64 // digits, about
	text     string
}

func newLimit(r *big.Rat) *limit {
	if r == nil {
		return nil
	}
	l := &limit{rat: r, text: decimalText(r), size: int64(r.Num().BitLen()+r.Denom().BitLen()) / 3}
	if r.Num().BitLen() < 64 && r.Denom().BitLen() < 64 {
		l.num, l.den = r.Num().Int64(), r.Denom().Int64()
	}
	return l
}

// decimalText is a number as JSON can write it, exactly if that is short.
func decimalText(r *big.Rat) string {
	if digits, exact := r.FloatPrec(); exact && digits < shortNumber && r.Num().BitLen() < 3*shortNumber {
		return r.FloatString(digits)
	}
	f, _ := r.Float64()
	return "about " + strconv.FormatFloat(f, 'g', -1, 64)
}

const shortNumber = 60 // characters

// numberText is a number of a value, exactly if it is short.
func numberText(form string) string {
	if len(form) < shortNumber {
		return form
	}
	f, _ := strconv.ParseFloat(form, 64)
	return "about " + strconv.FormatFloat(f, 'g', -1, 64)
}

// isInteger reports whether a number in canonical form is an integer: one with an exponent that
// is not negative has no fraction.
func isInteger(form string) bool {
	e := strings.IndexByte(form, 'e')
	if e < 0 {
		return strings.IndexByte(form, '.') < 0
	}
	return form[e+1] != '-'
}

// decimal is a number of a value: digits × 10^exponent.
type decimal struct {
	small    int64    // the digits, if they are few
	digits   *big.Int // otherwise
	exponent int
}

// pow10 are powers of ten.
var pow10 = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
}

// parseDecimal reads a number in canonical form.
func parseDecimal(form string) (d decimal) {
	if e := strings.IndexByte(form, 'e'); e >= 0 {
		d.exponent, _ = strconv.Atoi(form[e+1:])
		form = form[:e]
	}
	if whole, fraction, found := strings.Cut(form, "."); found {
		form = whole + fraction
		d.exponent -= len(fraction)
	}
	if len(form) < len(pow10) { // with the sign, 18 digits at most
		d.small, _ = strconv.ParseInt(form, 10, 64)
		return d
	}
	d.digits, _ = new(big.Int).SetString(form, 10)
	return d
}

// against makes integers of a number and a limit that compare in the same way.
func (d decimal) against(l *limit) (x, y *big.Int) {
	x = d.digits
	if x == nil {
		x = big.NewInt(d.small)
	}
	x = new(big.Int).Mul(x, l.rat.Denom())
	y = new(big.Int).Set(l.rat.Num())
	power := big.NewInt(int64(max(d.exponent, -d.exponent)))
	power.Exp(big.NewInt(10), power, nil)
	if d.exponent < 0 {
		return x, y.Mul(y, power)
	}
	return x.Mul(x, power), y
}

// wide is an integer of 129 bits.
type wide struct {
	negative bool
	high     uint64
	low      uint64
}

func product(a int64, b uint64) wide {
	n := wide{negative: a < 0}
	n.high, n.low = bits.Mul64(uint64(max(a, -a)), b)
	return n
}

// short does what against does, for small numbers.
func (d decimal) short(l *limit) (x, y wide, ok bool) {
	if d.digits != nil || l.den == 0 || d.exponent > 0 || -d.exponent >= len(pow10) {
		return x, y, false
	}
	return product(d.small, uint64(l.den)), product(l.num, pow10[-d.exponent]), true
}

// compare is negative if the number is below the limit.
func (d decimal) compare(l *limit) int {
	x, y, ok := d.short(l)
	switch {
	case !ok:
		x, y := d.against(l)
		return x.Cmp(y)
	case x.negative != y.negative:
		if x.negative {
			return -1
		}
		return 1
	case x.negative:
		x, y = y, x
	}
	return cmp.Or(cmp.Compare(x.high, y.high), cmp.Compare(x.low, y.low))
}

// isMultiple reports whether the number is a multiple of the limit.
func (d decimal) isMultiple(l *limit) bool {
	if x, y, ok := d.short(l); ok && y.high == 0 {
		return bits.Rem64(x.high, x.low, y.low) == 0
	}
	x, y := d.against(l)
	return x.Rem(x, y).Sign() == 0
}

// price is what a comparison costs beside the rule itself.
func (d decimal) price(form string, l *limit) int64 {
	if _, _, ok := d.short(l); ok {
		return 0
	}
	return largePrice + (int64(len(form)+max(d.exponent, -d.exponent))+l.size)/digitSpan
}
