package collation

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// DAD is a dimensional address in its canonical text (1.9): each segment follows a comma, and
// four or more equal segments are written once, as in `,0^57,3,0`. Operations work on these
// runs, so an address of 10 000 equal segments stays a few bytes.
type DAD string

// RootDAD is the address of every trigger.
const RootDAD DAD = ",0"

// MaxSegments bounds the depth of an address; MaxIndex bounds each segment.
const (
	MaxSegments = 100_000
	MaxIndex    = MaxLeg2
)

// shortRun is the shortest run that is written with a count.
const shortRun = 4

// ErrAddress is wrapped by the errors of ParseDAD.
var ErrAddress = errors.New("malformed dimensional address")

// run is a value and the number of neighbouring segments that have it.
type run struct{ value, count int }

// ParseDAD accepts canonical text only, so that an address has one spelling. Error: ErrAddress.
func ParseDAD(s string) (DAD, error) {
	runs, err := parseRuns(s)
	if err != nil {
		return "", err
	}
	if again := format(runs); string(again) != s {
		return "", fmt.Errorf("%w: %.80q is spelled %q", ErrAddress, s, again)
	}
	return DAD(s), nil
}

// Child is the address of a child at index 0: one segment deeper.
func (d DAD) Child() DAD { return format(append(d.runs(), run{0, 1})) }

// WithIndex replaces the last segment by the index of a pass (C6).
func (d DAD) WithIndex(index int) DAD {
	return format(append(cut(d.runs(), d.Depth()-1), run{index, 1}))
}

// Base is the address with 0 as its last segment; instances are keyed by it.
func (d DAD) Base() DAD { return d.WithIndex(0) }

// Depth is the number of segments; a trigger's is 1.
func (d DAD) Depth() int {
	n := 0
	for _, r := range d.runs() {
		n += r.count
	}
	return n
}

// Prefix is the address of the ancestor with that many segments. It is the whole address if
// that has no more.
func (d DAD) Prefix(segments int) DAD { return format(cut(d.runs(), segments)) }

// Compare orders addresses segment by segment: a later pass comes later, and an address comes
// after its own prefixes.
func (d DAD) Compare(other DAD) int {
	x, y := d.runs(), other.runs()
	for len(x) > 0 && len(y) > 0 {
		if c := cmp.Compare(x[0].value, y[0].value); c != 0 {
			return c
		}
		n := min(x[0].count, y[0].count)
		x, y = drop(x, n), drop(y, n)
	}
	return cmp.Compare(len(x), len(y))
}

// Key is the 16-byte hash by which tables are keyed (1.9).
func (d DAD) Key() [16]byte {
	sum := sha256.Sum256([]byte(d))
	return [16]byte(sum[:16])
}

// Pass is the number, from 1, of the pass that the address lies in. In nested loops the
// innermost one that is past its first pass counts.
func (d DAD) Pass() int {
	pass := 1
	for _, r := range d.runs() {
		if r.value > 0 {
			pass = r.value + 1
		}
	}
	return pass
}

// runs reads an address that was made here or checked by ParseDAD.
func (d DAD) runs() []run {
	runs, err := parseRuns(string(d))
	if err != nil {
		return nil
	}
	return runs
}

func parseRuns(s string) ([]run, error) {
	if s == "" || s[0] != ',' {
		return nil, fmt.Errorf("%w: %.80q does not begin with a comma", ErrAddress, s)
	}
	runs := make([]run, 0, 4)
	depth := 0
	for part := range strings.SplitSeq(s[1:], ",") {
		value, count, repeated := strings.Cut(part, "^")
		v, err := strconv.ParseUint(value, 10, 31)
		n := uint64(1)
		if err == nil && repeated {
			n, err = strconv.ParseUint(count, 10, 31)
		}
		if err != nil || v > MaxIndex || n == 0 {
			return nil, fmt.Errorf("%w: segment %.40q of %.80q is no index, or over %d", ErrAddress, part, s, MaxIndex)
		}
		if depth += int(n); depth > MaxSegments {
			return nil, fmt.Errorf("%w: %.80q has over %d segments", ErrAddress, s, MaxSegments)
		}
		runs = append(runs, run{int(v), int(n)})
	}
	return runs, nil
}

// cut keeps the first n segments.
func cut(runs []run, n int) []run {
	out := make([]run, 0, len(runs)+1)
	for _, r := range runs {
		if n <= 0 {
			break
		}
		r.count = min(r.count, n)
		n -= r.count
		out = append(out, r)
	}
	return out
}

// drop leaves out the first n segments, which belong to one run.
func drop(runs []run, n int) []run {
	if runs[0].count -= n; runs[0].count > 0 {
		return runs
	}
	return runs[1:]
}

func format(runs []run) DAD {
	b := make([]byte, 0, 32)
	for i := 0; i < len(runs); {
		value, count := runs[i].value, 0
		for ; i < len(runs) && runs[i].value == value; i++ {
			count += runs[i].count
		}
		if count >= shortRun {
			b = strconv.AppendInt(append(b, ','), int64(value), 10)
			b = strconv.AppendInt(append(b, '^'), int64(count), 10)
			continue
		}
		for range count {
			b = strconv.AppendInt(append(b, ','), int64(value), 10)
		}
	}
	return DAD(b)
}
