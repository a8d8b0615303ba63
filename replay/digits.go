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
	gState, gLeg1, gComplete, gTaken, gArrivals, gLeg2   = 0, 1, 2, 3, 4, 5
	gUnused, gSnapshot, gStep1, gStep2, gStep3, gOrdinal = 0, 1, 2, 3, 4, 5
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

// set reports whether the marker digit of a group is set (C3).
func (d *digits) set(group int, l journal.Ledger) bool { return d[group].value(l) == 1 }

// unlawfulActivity says which law of a single activity ledger is broken, also that of a join; "":
// none (C4).
func unlawfulActivity(l journal.Ledger) string {
	n := activityDigits.growth(0, l)
	switch {
	case l < 0 || l >= journal.MaxLedger:
		return "it does not fit into 15 digits"
	case n[gState] > 2:
		return "position 1 is over 2"
	case n[gComplete] > 1 || n[gTaken] > 1:
		return "a marker digit is over 1"
	case n[gComplete] == 1 && n[gLeg1] == 0:
		return "Leg1 complete without an entry"
	case n[gState] == 1 && (n[gLeg1] != 1 || n[gComplete] != 1):
		return "a trigger without its one complete Leg1"
	case n[gState] == 2 && n[gComplete] != 1:
		return "finalized without Leg1"
	}
	return ""
}

// unlawfulMessage is unlawfulActivity for the GUID ledger of a message.
func unlawfulMessage(l journal.Ledger) string {
	n := guidDigits.growth(0, l)
	switch {
	case l < 0 || l >= journal.MaxLedger || n[gUnused] != 0:
		return "positions 1–3 are used"
	case max(n[gSnapshot], n[gStep1], n[gStep2], n[gStep3]) > 1:
		return "a marker digit is over 1"
	case n[gStep2] > n[gStep1]:
		return "step 2 without step 1"
	case n[gSnapshot] > n[gStep2]:
		return "snapshot without step 2"
	case n[gStep3] > n[gSnapshot]:
		return "step 3 without the snapshot"
	}
	return ""
}

// ordinal is the place of a message among the Leg2 messages of its activity (1.3).
func ordinal(guid journal.Ledger) int { return int(guidDigits[gOrdinal].value(guid)) }

// complete reports whether a message has no step left: step 3 is only for the one that closed the
// job (1.7).
func complete(guid journal.Ledger) bool {
	return guidDigits.set(gStep2, guid) && (!guidDigits.set(gSnapshot, guid) || guidDigits.set(gStep3, guid))
}

// joinDigits are the digits of a join's ledger that arrivals move (1.10).
type joinDigits struct {
	arrivals int64
	taken    bool
}

func joinOf(l journal.Ledger) joinDigits {
	return joinDigits{activityDigits[gArrivals].value(l), activityDigits.set(gTaken, l)}
}

// maxArrivals is the most that positions 6–7 count (C4).
const maxArrivals = 99

// arrive counts one arrival; false: there is no digit for it.
func (j joinDigits) arrive(taken bool) (joinDigits, bool) {
	return joinDigits{j.arrivals + 1, j.taken || taken}, j.arrivals < maxArrivals
}
