package collation_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// digits draws the value of a ledger, mostly of digits at which something happens.
var digits = rapid.Custom(func(t *rapid.T) int64 {
	n := int64(0)
	for range journal.LedgerDigits {
		n = n*10 + rapid.SampledFrom([]int64{0, 0, 0, 1, 1, 2, 9}).Draw(t, "digit")
	}
	return n
})

// starts are values from which no few digits can be far away: of nothing, a pivot, a trigger, and
// before each ceiling.
var starts = []int64{
	0, 1_100_000_000_000, int64(collation.TriggerBorn), 89_000_000_000_000, 98_000_000_000_000, 9_800_000_000,
	1_100_099_999_998,
	1_100_000_000_001, 201_100_000_000_001,
}

// TestTwin does each operation on a ledger and on a naive twin of 15 characters: digits, refusals
// and their reasons, laws and what is read of a ledger agree (C1–C4, 1.12, 6.4). No operation makes
// a marker digit 2, and no counter carries.
func TestTwin(t *testing.T) {
	t.Parallel()
	moves := func(t require.TestingT, n int64) []int64 {
		l, w := collation.ActivityLedger(n), twin(journal.Ledger(n).String())
		if !w.valid(true) {
			return nil
		}
		require.Equal(t, []any{
			w.number(1, 1), w.number(2, 3), w.at(4, 4) == "1", w.at(5, 5) == "1",
			w.number(6, 7), w.number(8, 15), w[0] == '2',
		}, []any{
			l.State(), l.Leg1Entries(), l.Leg1Complete(), l.JoinTaken(), l.Arrivals(), l.Leg2Entries(), l.Finalized(),
		})
		var out []int64
		for op, move := range activityMoves {
			next, err := move(l)
			want, refused := w.activity(op)
			require.ErrorIs(t, err, refused, "%s on %s", op, l)
			require.Equal(t, string(want), next.String(), "%s on %s", op, l)
			out = append(out, int64(next))
		}
		return out
	}
	for _, n := range starts {
		for _, next := range moves(t, n) {
			moves(t, next)
		}
	}
	rapid.Check(t, func(t *rapid.T) { moves(t, digits.Draw(t, "ledger")) })
}

// TestGUIDTwin is TestTwin for GUID ledgers (1.3).
func TestGUIDTwin(t *testing.T) {
	t.Parallel()
	for _, ordinal := range []int{0, 1, 7, collation.MaxLeg2} {
		l := collation.Accepted(ordinal)
		for range 5 {
			w := twin(l.String())
			require.Equal(t, []any{w.at(4, 4) == "1", w.at(5, 5) == "1", w.at(6, 6) == "1", w.at(7, 7) == "1", ordinal},
				[]any{l.Closed(), l.Step1(), l.Step2(), l.Step3(), l.Ordinal()})
			require.Equal(t, w.at(4, 6) == "011" || w.at(4, 7) == "1111", l.Complete(), "step 3 is due only with the snapshot: %s", l)
			on := l
			for op, move := range guidMoves {
				next, err := move(l)
				want, refused := w.guid(op)
				require.ErrorIs(t, err, refused, "%s on %s", op, l)
				require.Equal(t, string(want), next.String(), "%s on %s", op, l)
				if err == nil {
					on = next
				}
			}
			l = on
		}
	}
}

// TestLawsAgreeWithTwin compares Valid and Grows with the twin's for pairs of values: near each
// other, so that carries happen, and far apart. A carry makes a larger number, and is no growth.
func TestLawsAgreeWithTwin(t *testing.T) {
	t.Parallel()
	laws := func(t require.TestingT, before, after int64) {
		lawful := func(err error) bool {
			require.True(t, err == nil || errors.Is(err, collation.ErrDigit), "%v", err)
			return err == nil
		}
		b, a := twin(journal.Ledger(before).String()), twin(journal.Ledger(after).String())
		require.Equal(t, b.grows(a), collation.ActivityLedger(before).Grows(collation.ActivityLedger(after)), "%s → %s", b, a)
		require.Equal(t, b.guidGrows(a), collation.GUIDLedger(before).Grows(collation.GUIDLedger(after)), "GUID %s → %s", b, a)
		for _, join := range []bool{false, true} {
			require.Equal(t, a.valid(join), lawful(collation.ActivityLedger(after).Valid(join)), "%s, join %t", a, join)
		}
		require.Equal(t, a.guidValid(), lawful(collation.GUIDLedger(after).Valid()), "GUID %s", a)
	}
	weights := []int64{0, 1, 100_000_000, 1e9, 1e10, 1e11, 1e12, 1e14, 2e14}
	for _, full := range []int64{
		1_100_099_999_999, 99_100_000_000_000, 1_190_000_000_000, 9_900_000_000, 10_099_999_999, 111_100_000_001,
	} {
		for _, add := range weights {
			laws(t, full, full+add)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		before := digits.Draw(t, "before")
		after := digits.Draw(t, "after")
		if rapid.Bool().Draw(t, "near") {
			after = min(before+rapid.SampledFrom(weights).Draw(t, "add")*rapid.Int64Range(-1, 9).Draw(t, "times"), 1e15-1)
			after = max(after, 0)
		}
		laws(t, before, after)
	})
	for _, out := range []int64{-1, 1e15, 1 << 62} {
		require.ErrorIs(t, collation.ActivityLedger(out).Valid(true), collation.ErrDigit)
		require.ErrorIs(t, collation.GUIDLedger(out).Valid(), collation.ErrDigit)
	}
}
