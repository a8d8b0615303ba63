package replay

import (
	"fmt"

	"github.com/quipu-journal/quipu/journal"
)

// group is one digit group of a ledger (1.2, 1.3).
type group struct {
	name string
	unit journal.Ledger
	size journal.Ledger
}

func (g group) value(l journal.Ledger) int64 { return int64(l / g.unit % g.size) }

// digits are the groups of one kind of ledger, from the left.
type digits [6]group

// growth is one increment for each group.
type growth [6]int64

var activityDigits = digits{
	{"position 1 (state)", 100_000_000_000_000, 10},
	{"positions 2–3 (Leg1 entries)", 1_000_000_000_000, 100},
	{"position 4 (Leg1 complete)", 100_000_000_000, 10},
	{"position 5 (join taken)", 10_000_000_000, 10},
	{"positions 6–7 (arrivals)", 100_000_000, 100},
	{"positions 8–15 (Leg2 entries)", 1, 100_000_000},
}

var guidDigits = digits{
	{"positions 1–3 (unused)", 1_000_000_000_000, 1000},
	{"position 4 (snapshot)", 100_000_000_000, 10},
	{"position 5 (step 1)", 10_000_000_000, 10},
	{"position 6 (step 2)", 1_000_000_000, 10},
	{"position 7 (step 3)", 100_000_000, 10},
	{"positions 8–15 (ordinal)", 1, 100_000_000},
}

// Indexes into growth.
const (
	gState, gLeg1, gComplete, gTaken, gArrivals, gLeg2 = 0, 1, 2, 3, 4, 5
	gSnapshot, gStep1, gStep2, gStep3, gOrdinal        = 1, 2, 3, 4, 5
)

func (d *digits) growth(before, after journal.Ledger) growth {
	var g growth
	for i := range d {
		g[i] = d[i].value(after) - d[i].value(before)
	}
	return g
}

// differ names the first group in which two ledgers differ.
func (d *digits) differ(a, b journal.Ledger) string {
	for i := range d {
		if x, y := d[i].value(a), d[i].value(b); x != y {
			return fmt.Sprintf("%s: %d, not %d", d[i].name, x, y)
		}
	}
	return "no digit"
}

// wrong names the first group that grew by another amount than the entry allows. It compares
// group by group, since a carry can look legal (C4).
func (d *digits) wrong(before, after journal.Ledger, want growth) string {
	got := d.growth(before, after)
	for i := range d {
		if got[i] != want[i] {
			return fmt.Sprintf("%s goes %d → %d, the entry allows %+d", d[i].name, d[i].value(before), d[i].value(after), want[i])
		}
	}
	return ""
}
