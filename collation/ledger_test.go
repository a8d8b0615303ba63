package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// TestWorkedLedgers walks the worked ledgers (1.12).
func TestWorkedLedgers(t *testing.T) {
	t.Parallel()
	var a collation.ActivityLedger
	step := func(want string, move func() (collation.ActivityLedger, error)) {
		t.Helper()
		next, err := move()
		require.NoError(t, err)
		require.Equal(t, want, next.String())
		require.True(t, a.Grows(next), "C1")
		require.NoError(t, next.Valid(false), "C4")
		a = next
	}
	step("001000000000000", func() (collation.ActivityLedger, error) { return a.EnterLeg1() })
	step("001100000000000", func() (collation.ActivityLedger, error) { return a.CompleteLeg1() })
	step("001100000000001", func() (collation.ActivityLedger, error) { return a.AcceptLeg2() })
	step("001100000000002", func() (collation.ActivityLedger, error) { return a.AcceptLeg2() })
	step("201100000000002", func() (collation.ActivityLedger, error) { return a.Finalize() })
	require.Equal(t, 2, a.Leg2Entries())
	require.Equal(t, 1, a.Leg1Entries())
	require.True(t, a.Finalized())

	a = 0 // a join of three, one skipped
	join := func(want string, move func() (collation.ActivityLedger, error)) {
		t.Helper()
		next, err := move()
		require.NoError(t, err)
		require.Equal(t, want, next.String())
		require.True(t, a.Grows(next), "C1")
		require.NoError(t, next.Valid(true), "C4")
		require.Error(t, next.Valid(false), "C4: positions 5–7 only on joins")
		a = next
	}
	join("000010100000000", func() (collation.ActivityLedger, error) { return a.Arrive(true) })
	join("000010200000000", func() (collation.ActivityLedger, error) { return a.Arrive(false) })
	join("000010300000000", func() (collation.ActivityLedger, error) { return a.Arrive(true) })
	join("001010300000000", func() (collation.ActivityLedger, error) { return a.EnterLeg1() })
	join("001110300000000", func() (collation.ActivityLedger, error) { return a.CompleteLeg1() })

	a = 1_100_000_000_000 // a pivot
	step("001100000000001", func() (collation.ActivityLedger, error) { return a.PreSeed() })
	step("001100000000002", func() (collation.ActivityLedger, error) { return a.AcceptLeg2() })
	_, err := a.PreSeed()
	require.ErrorIs(t, err, collation.ErrDigit)

	require.Equal(t, "101100000000001", collation.TriggerBorn.String())
	require.NoError(t, collation.TriggerBorn.Valid(false))
	require.Equal(t, "000010000000000", collation.StartBorn.String())
	require.NoError(t, collation.StartBorn.Valid())
}

// TestWorkedGUIDLedgers walks the worked GUID ledgers (1.12).
func TestWorkedGUIDLedgers(t *testing.T) {
	t.Parallel()
	g := collation.Accepted(1)
	step := func(want string, move func() (collation.GUIDLedger, error)) {
		t.Helper()
		next, err := move()
		require.NoError(t, err)
		require.Equal(t, want, next.String())
		require.True(t, g.Grows(next), "C1")
		require.NoError(t, next.Valid(), "C4")
		g = next
	}
	require.Equal(t, "000000000000001", g.String())
	step("000010000000001", func() (collation.GUIDLedger, error) { return g.SetStep1() })
	require.False(t, g.Complete())
	step("000011000000001", func() (collation.GUIDLedger, error) { return g.SetStep2() })
	require.True(t, g.Complete(), "step 3 is due only with the snapshot")
	step("000111000000001", func() (collation.GUIDLedger, error) { return g.SetClosed() })
	require.False(t, g.Complete(), "the closer still has its completion tasks")
	step("000111100000001", func() (collation.GUIDLedger, error) { return g.SetStep3() })
	require.True(t, g.Complete())
	require.Equal(t, 1, g.Ordinal())
}

// TestCeilings: ceilings are checked before the increment, so that no carry happens (C4).
func TestCeilings(t *testing.T) {
	t.Parallel()
	full := collation.ActivityLedger(99_000_000_000_000)
	next, err := full.EnterLeg1()
	require.ErrorIs(t, err, collation.ErrCeiling)
	require.Equal(t, full, next)
	last, err := collation.ActivityLedger(98_000_000_000_000).EnterLeg1()
	require.NoError(t, err)
	require.Equal(t, full, last)

	full = 9_900_000_000
	next, err = full.Arrive(true)
	require.ErrorIs(t, err, collation.ErrCeiling)
	require.Equal(t, full, next)

	full = 1_100_099_999_999
	next, err = full.AcceptLeg2()
	require.ErrorIs(t, err, collation.ErrCeiling)
	require.Equal(t, full, next)
	last, err = (full - 1).AcceptLeg2()
	require.NoError(t, err)
	require.Equal(t, full, last)
	require.NoError(t, last.Valid(false))
}

// TestMarkerDigitsAreSetOnce: no operation makes a marker digit 2 (C3).
func TestMarkerDigitsAreSetOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		ledger collation.ActivityLedger
		move   func(collation.ActivityLedger) (collation.ActivityLedger, error)
	}{
		{"Leg1 complete twice", 1_100_000_000_000, collation.ActivityLedger.CompleteLeg1},
		{"Leg1 complete without an entry", 0, collation.ActivityLedger.CompleteLeg1},
		{"Leg1 entered after it was complete", 1_100_000_000_000, collation.ActivityLedger.EnterLeg1},
		{"trigger entered again", collation.TriggerBorn, collation.ActivityLedger.EnterLeg1},
		{"Leg2 before Leg1", 1_000_000_000_000, collation.ActivityLedger.AcceptLeg2},
		{"Leg2 after the end", 201_100_000_000_001, collation.ActivityLedger.AcceptLeg2},
		{"finalized twice", 201_100_000_000_001, collation.ActivityLedger.Finalize},
		{"finalized before Leg1", 1_000_000_000_000, collation.ActivityLedger.Finalize},
		{"trigger finalized", collation.TriggerBorn, collation.ActivityLedger.Finalize},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			next, err := c.move(c.ledger)
			require.ErrorIs(t, err, collation.ErrDigit)
			require.Equal(t, c.ledger, next)
		})
	}
	for name, move := range map[string]func(collation.GUIDLedger) (collation.GUIDLedger, error){
		"step 1": collation.GUIDLedger.SetStep1, "step 2": collation.GUIDLedger.SetStep2,
		"snapshot": collation.GUIDLedger.SetClosed, "step 3": collation.GUIDLedger.SetStep3,
	} {
		done := collation.GUIDLedger(111_100_000_001)
		next, err := move(done)
		require.ErrorIs(t, err, collation.ErrDigit, name)
		require.Equal(t, done, next)
	}
}

// TestTwin runs random operations on a ledger and on a naive twin of 15 characters: digits,
// refusals and laws must agree (C1–C4, 6.4).
func TestTwin(t *testing.T) {
	t.Parallel()
	starts := []collation.ActivityLedger{
		0, 97_000_000_000_000, 1_100_000_000_000, 1_100_099_999_997, collation.TriggerBorn, 89_000_000_000_000,
	}
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SampledFrom(starts).Draw(t, "start")
		w := twin(l.String())
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			op := rapid.SampledFrom([]string{"enter", "complete", "accept", "finalize", "preseed", "take", "skip"}).Draw(t, "op")
			next, err := activityMoves[op](l)
			want, lawful := w.activity(op)
			require.Equal(t, lawful, err == nil, "%s on %s: %v", op, l, err)
			require.Equal(t, string(want), next.String(), "%s on %s", op, l)
			require.True(t, l.Grows(next))
			require.NoError(t, next.Valid(true))
			l, w = next, want
		}
	})
}

// TestGUIDTwin is TestTwin for GUID ledgers.
func TestGUIDTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := collation.Accepted(rapid.SampledFrom([]int{0, 1, 7, collation.MaxLeg2}).Draw(t, "ordinal"))
		w := twin(l.String())
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			op := rapid.SampledFrom([]string{"step1", "step2", "closed", "step3"}).Draw(t, "op")
			next, err := guidMoves[op](l)
			want, lawful := w.guid(op)
			require.Equal(t, lawful, err == nil, "%s on %s: %v", op, l, err)
			require.Equal(t, string(want), next.String(), "%s on %s", op, l)
			require.True(t, l.Grows(next))
			require.NoError(t, next.Valid())
			l, w = next, want
		}
	})
}

// TestLawsAgreeWithTwin compares Valid and Grows with the twin's for pairs of values: near each
// other, so that carries happen, and far apart.
func TestLawsAgreeWithTwin(t *testing.T) {
	t.Parallel()
	digits := rapid.SampledFrom([]int64{0, 0, 0, 1, 1, 2, 9})
	value := rapid.Custom(func(t *rapid.T) int64 {
		n := int64(0)
		for range journal.LedgerDigits {
			n = n*10 + digits.Draw(t, "digit")
		}
		return n
	})
	weights := []int64{0, 1, 100_000_000, 1e9, 1e10, 1e11, 1e12, 1e14, 2e14}
	rapid.Check(t, func(t *rapid.T) {
		before := value.Draw(t, "before")
		after := value.Draw(t, "after")
		if rapid.Bool().Draw(t, "near") {
			after = min(before+rapid.SampledFrom(weights).Draw(t, "add")*rapid.Int64Range(-1, 9).Draw(t, "times"), 1e15-1)
			after = max(after, 0)
		}
		b, a := twin(journal.Ledger(before).String()), twin(journal.Ledger(after).String())
		require.Equal(t, b.grows(a), collation.ActivityLedger(before).Grows(collation.ActivityLedger(after)), "%s → %s", b, a)
		require.Equal(t, b.guidGrows(a), collation.GUIDLedger(before).Grows(collation.GUIDLedger(after)), "GUID %s → %s", b, a)
		for _, join := range []bool{false, true} {
			require.Equal(t, a.valid(join), collation.ActivityLedger(after).Valid(join) == nil, "%s, join %t", a, join)
		}
		require.Equal(t, a.guidValid(), collation.GUIDLedger(after).Valid() == nil, "GUID %s", a)
	})
	for _, out := range []int64{-1, 1e15, 1 << 62} {
		require.ErrorIs(t, collation.ActivityLedger(out).Valid(true), collation.ErrDigit)
		require.ErrorIs(t, collation.GUIDLedger(out).Valid(), collation.ErrDigit)
	}
}

// TestCarryIsNoGrowth: an increment that carries into the next group makes a larger number, and
// is still refused (C4).
func TestCarryIsNoGrowth(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]collation.ActivityLedger{
		{1_100_099_999_999, 1_100_100_000_000},    // Leg2 entries into arrivals
		{99_100_000_000_000, 100_100_000_000_000}, // Leg1 entries into the state
		{1_190_000_000_000, 1_200_000_000_000},    // the join's marker into Leg1 complete
		{9_900_000_000, 10_000_000_000},           // arrivals into the marker
	} {
		require.Greater(t, c[1], c[0])
		require.False(t, c[0].Grows(c[1]), "%s → %s", c[0], c[1])
	}
	require.False(t, collation.GUIDLedger(10_099_999_999).Grows(10_100_000_000))
	require.False(t, collation.GUIDLedger(1).Grows(2), "an ordinal never changes (C6)")
}
