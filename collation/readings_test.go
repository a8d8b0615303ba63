package collation_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/testkit/readings"
)

// The engine reads ledgers, addresses and entries as the rules say. The verifier, which reads them
// by code of its own, is held to the same file (TestReadings of replay).
func TestReadings(t *testing.T) {
	t.Parallel()
	f := readings.Flow(t)
	ledger := func(args []string) collation.ActivityLedger {
		return collation.ActivityLedger(readings.Ledger(t, args))
	}
	message := func(args []string) collation.GUIDLedger { return collation.GUIDLedger(readings.Ledger(t, args)) }
	digit := func(is bool) int { return map[bool]int{true: 1}[is] }
	yes := func(err error) string { return map[bool]string{true: "yes", false: "no"}[err == nil] }
	readings.Check(t, map[string]func([]string) string{
		"word": func(args []string) string { return words[args[0]] },
		"activity": func(args []string) string {
			l := ledger(args)
			return fmt.Sprint(l.State(), l.Leg1Entries(), digit(l.Leg1Complete()), digit(l.JoinTaken()),
				l.Arrivals(), l.Leg2Entries())
		},
		"message": func(args []string) string {
			l := message(args)
			done := map[bool]string{true: "done", false: "open"}[l.Complete()]
			return fmt.Sprint(digit(l.Closed()), digit(l.Step1()), digit(l.Step2()), digit(l.Step3()),
				l.Ordinal(), " ", done)
		},
		"lawful":         func(args []string) string { return yes(ledger(args).Valid(true)) },
		"lawful-message": func(args []string) string { return yes(message(args).Valid()) },
		"step": func(args []string) string {
			return stepped(activitySteps[args[0]](ledger(args)))
		},
		"step-message": func(args []string) string {
			return stepped(messageSteps[args[0]](message(args)))
		},
		"child":  func(args []string) string { return string(collation.DAD(args[0]).Child()) },
		"pass":   func(args []string) string { return string(collation.DAD(args[0]).WithIndex(readings.Number(t, args))) },
		"prefix": func(args []string) string { return string(collation.DAD(args[0]).Prefix(readings.Number(t, args))) },
		"depth":  func(args []string) string { return strconv.Itoa(collation.DAD(args[0]).Depth()) },
		"see": func(args []string) string {
			act, reader := readings.Activities(t, f, args)
			key := collation.AddressOf(act, reader, collation.DAD(args[2]))
			require.Equal(t, args[0], key.Activity)
			return string(key.DAD)
		},
		"result": func(args []string) string {
			r := collation.ResultOf(readings.Entry(t, args[0]))
			if r.Error == nil {
				return readings.Result(r, nil)
			}
			return readings.Result(r, collation.FailureOf(r.Error))
		},
	})
}

var words = map[string]string{
	"code-success":                  strconv.Itoa(collation.CodeOK),
	"code-of-a-signal-that-repeats": strconv.Itoa(collation.CodePass),
	"code-of-a-failed-expression":   strconv.Itoa(collation.CodeInternal),
	"reason-of-a-failed-expression": collation.ReasonExpression,
	"held-at-a-ceiling":             collation.HeldStuck,
	"held-for-an-operator":          collation.HeldParked,
	"held-by-parallel":              collation.HeldParallel,
	"action-repair":                 collation.ActionRepair,
	"most-bytes-of-elements":        strconv.Itoa(collation.MaxElementBytes),
	"root":                          string(collation.RootDAD),
	"trigger-born":                  collation.TriggerBorn.String(),
}

var (
	activitySteps = map[string]func(collation.ActivityLedger) (collation.ActivityLedger, error){
		"enter":          collation.ActivityLedger.EnterLeg1,
		"complete":       collation.ActivityLedger.CompleteLeg1,
		"seed":           collation.ActivityLedger.PreSeed,
		"accept":         collation.ActivityLedger.AcceptLeg2,
		"finalize":       collation.ActivityLedger.Finalize,
		"arrive-taken":   func(l collation.ActivityLedger) (collation.ActivityLedger, error) { return l.Arrive(true) },
		"arrive-skipped": func(l collation.ActivityLedger) (collation.ActivityLedger, error) { return l.Arrive(false) },
	}
	messageSteps = map[string]func(collation.GUIDLedger) (collation.GUIDLedger, error){
		"work": collation.GUIDLedger.SetStep1, "children": collation.GUIDLedger.SetStep2,
		"close": collation.GUIDLedger.SetClosed, "tasks": collation.GUIDLedger.SetStep3,
	}
)

func stepped[T fmt.Stringer](after T, err error) string {
	if err != nil {
		return readings.Refused
	}
	return after.String()
}
