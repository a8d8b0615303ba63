package journal

import (
	"errors"
	"fmt"
)

// Ledger is the raw value of a 15-digit ledger. Package collation defines the meaning of the
// digits and their lawful changes.
type Ledger int64

// LedgerDigits is the width of every ledger.
const LedgerDigits = 15

// MaxLedger is the first value that no longer fits into 15 digits.
const MaxLedger Ledger = 1_000_000_000_000_000

// ErrLedger is wrapped by errors about ledger texts.
var ErrLedger = errors.New("malformed ledger")

// String returns the 15 digits.
func (l Ledger) String() string { return string(l.append(make([]byte, 0, LedgerDigits))) }

func (l Ledger) append(dst []byte) []byte {
	var b [LedgerDigits]byte
	n := uint64(l)
	for i := LedgerDigits - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return append(dst, b[:]...)
}

// ParseLedger reads exactly 15 digits. Error: ErrLedger.
func ParseLedger[T string | []byte](s T) (Ledger, error) {
	if len(s) != LedgerDigits {
		return 0, fmt.Errorf("%w: %.40q has %d characters, want %d digits", ErrLedger, string(s), len(s), LedgerDigits)
	}
	var l Ledger
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, fmt.Errorf("%w: %q has a character that is no digit at position %d", ErrLedger, string(s), i+1)
		}
		l = l*10 + Ledger(s[i]-'0')
	}
	return l, nil
}

// MarshalText writes the String.
func (l Ledger) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads it: ErrLedger.
func (l *Ledger) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLedger(text)
	return err
}
