package replay

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/testkit/readings"
	"github.com/quipu-journal/quipu/journal"
)

// The verifier reads ledgers, addresses and entries as the rules say. The engine is held to the same
// file (TestReadings of collation).
func TestReadings(t *testing.T) {
	t.Parallel()
	f := readings.Flow(t)
	ledger := func(args []string) journal.Ledger { return readings.Ledger(t, args) }
	yes := func(broken string) string { return map[bool]string{true: "yes", false: "no"}[broken == ""] }
	readings.Check(t, map[string]func([]string) string{
		"word": func(args []string) string { return words[args[0]] },
		"activity": func(args []string) string {
			g := activityDigits.growth(0, ledger(args))
			require.Equal(t, joinDigits{g[gArrivals], g[gTaken] == 1}, joinOf(ledger(args)))
			return fmt.Sprint(g[gState], g[gLeg1], g[gComplete], g[gTaken], g[gArrivals], g[gLeg2])
		},
		"message": func(args []string) string {
			l := ledger(args)
			g := guidDigits.growth(0, l)
			done := map[bool]string{true: "done", false: "open"}[complete(l)]
			return fmt.Sprint(g[gSnapshot], g[gStep1], g[gStep2], g[gStep3], ordinal(l), " ", done)
		},
		"lawful":         func(args []string) string { return yes(unlawfulActivity(ledger(args))) },
		"lawful-message": func(args []string) string { return yes(unlawfulMessage(ledger(args))) },
		"step": func(args []string) string {
			l := ledger(args)
			want := stepGrowth[args[0]]
			if taken := args[0] == "arrive-taken"; taken || args[0] == "arrive-skipped" {
				after, counts := joinOf(l).arrive(taken)
				if !counts {
					return readings.Refused
				}
				want[gArrivals] = after.arrivals - joinOf(l).arrivals
				if after.taken && !joinOf(l).taken {
					want[gTaken] = 1
				}
			}
			return stepped(&activityDigits, l, want, unlawfulActivity)
		},
		"step-message": func(args []string) string {
			return stepped(&guidDigits, ledger(args), messageGrowth[args[0]], unlawfulMessage)
		},
		"child":  func(args []string) string { return string(child(collation.DAD(args[0]))) },
		"pass":   func(args []string) string { return string(withIndex(collation.DAD(args[0]), readings.Number(t, args))) },
		"prefix": func(args []string) string { return string(prefix(collation.DAD(args[0]), readings.Number(t, args))) },
		"depth":  func(args []string) string { return strconv.Itoa(depth(collation.DAD(args[0]))) },
		"see": func(args []string) string {
			act, reader := readings.Activities(t, f, args)
			return string(addressOf(act, reader, collation.DAD(args[2])))
		},
		"result": func(args []string) string {
			e := readings.Entry(t, args[0])
			return readings.Result(resultOf(e), failureOf(e))
		},
	})
}

var words = map[string]string{
	"code-success":                  strconv.Itoa(codeOK),
	"code-of-a-signal-that-repeats": strconv.Itoa(codePass),
	"code-of-a-failed-expression":   strconv.Itoa(codeInternal),
	"reason-of-a-failed-expression": reasonExpression,
	"held-at-a-ceiling":             heldStuck,
	"held-for-an-operator":          heldParked,
	"held-by-parallel":              heldParallel,
	"action-repair":                 actionRepair,
	"most-bytes-of-elements":        strconv.Itoa(maxElementBytes),
	"root":                          string(rootAddress),
	"trigger-born": stepped(&activityDigits, 0, ownGrowth(&journal.Entry{Kind: journal.KindCreated}, &facts{}),
		unlawfulActivity),
}

var (
	stepGrowth = map[string]growth{
		"enter": {gLeg1: 1}, "complete": {gComplete: 1}, "seed": {gLeg2: 1}, "accept": {gLeg2: 1}, "finalize": {gState: 2},
	}
	messageGrowth = map[string]growth{
		"work": {gStep1: 1}, "children": {gStep2: 1}, "close": {gSnapshot: 1}, "tasks": {gStep3: 1},
	}
)

// stepped adds the weights of the groups that grow: what an engine without a ceiling would write.
// The ledger's laws have to find it.
func stepped(d *digits, before journal.Ledger, want growth, unlawful func(journal.Ledger) string) string {
	after := before
	for i, n := range want {
		after += journal.Ledger(n) * d[i].unit
	}
	if d.wrong(before, after, want) != "" || unlawful(after) != "" {
		return readings.Refused
	}
	return after.String()
}

// What the verifier makes of an address is what the engine makes of it, for all addresses.
func TestAddressesAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dad := collation.RootDAD
		index := rapid.SampledFrom([]int{0, 0, 0, 1, 10, collation.MaxIndex})
		for _, index := range rapid.SliceOfN(index, 0, 30).Draw(t, "indexes") {
			require.Equal(t, dad.Child(), child(dad))
			require.Equal(t, dad.Child().WithIndex(index), withIndex(child(dad), index))
			dad = dad.Child().WithIndex(index)
		}
		require.Equal(t, dad.Depth(), depth(dad))
		for n := range dad.Depth() + 2 {
			require.Equal(t, dad.Prefix(n), prefix(dad, n), "%s to %d", dad, n)
		}
	})
}
