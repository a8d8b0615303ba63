package replay_test

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

const hour = int64(3600e6)

func function() *replaytest.Function { return replaytest.NewFunction(replaytest.FunctionOptions{}) }

var (
	nap   = replaytest.Sleep("nap", "1", hour)
	later = replaytest.Sleep("later", "4", hour)
	ok    = replaytest.Signal("ok", "2", "order.ok", "order-42", 2*hour)
	inv   = replaytest.Child("inv", "3", "invoice", `{"total":5}`)
)

// suspended is a function that waits for three things: 3 its Leg1, 4 the
// suspension.
func suspended() *replaytest.Journal { return function().Suspend(nap, ok, inv).Journal() }

// rested is suspended, up to the wake of its sleep: 5.
func rested() *replaytest.Journal { return function().Suspend(nap, ok, inv).Wake("nap").Journal() }

// signalled is suspended, up to the wake by its signal: 5.
func signalled() *replaytest.Journal {
	return function().Suspend(nap, ok, inv).Deliver("order.ok", "order-42", 200, `{"by":"ann"}`).Journal()
}

// timedOut is suspended, up to the end of its wait's bound: 5.
func timedOut() *replaytest.Journal { return function().Suspend(nap, ok, inv).TimeOut("ok").Journal() }

// invoiced is suspended, up to the outcome of its child: 5; then the function's end: 6.
func invoiced() *replaytest.Journal {
	return function().Suspend(nap, ok, inv).Outcome("inv", answer(`{"id":"i-1"}`)).Succeed(`{"ok":true}`).Journal()
}

// moved names other things after its sleep: 4 nap and ok, 5 nap, 6 only later, 7 later, 8 ok
// again.
func moved() *replaytest.Journal {
	return function().Suspend(nap, ok).Wake("nap").Suspend(later).Wake("later").Suspend(ok).Journal()
}

// running is a function whose signal comes while it runs: 5 nap, 6 ok, 7 a suspension that is
// sent again at once, 8 the end.
func running() *replaytest.Journal {
	return function().Suspend(nap, ok).Wake("nap").Deliver("order.ok", "order-42", 200, `{}`).Suspend(later, ok).
		Succeed(`1`).Journal()
}

// awake is running up to 7.
func awake() *replaytest.Journal {
	return function().Suspend(nap, ok).Wake("nap").Deliver("order.ok", "order-42", 200, `{}`).Suspend(later, ok).Journal()
}

// crossed no longer names a signal that was delivered before: 5 nap, 6 only later, 7 the
// refused signal.
func crossed() *replaytest.Journal {
	return function().Suspend(nap, ok).Wake("nap").Send("order.ok", "order-42", 200, `{}`).Suspend(later).Journal()
}

// steps is invoiced with a commit at every mark: 5 to 7 the suspension, 8 to 10
// the outcome.
func steps() *replaytest.Journal {
	return replaytest.NewFunction(replaytest.FunctionOptions{Mode: modes["stepwise"]}).
		Suspend(nap, ok, inv).Outcome("inv", answer(`{"id":"i-1"}`)).Succeed(`{"ok":true}`).Journal()
}

// booked is a function with compensations.
func booked() *replaytest.Function {
	return function().Effect("1", "pay", "guarded", `{"id":7}`).Start("2", "refund", "undo")
}

// refused is booked, ended by an interrupt: 4.
func refused() *replaytest.Journal {
	return booked().Suspend(nap).Interrupt("no longer needed").Journal()
}

// failed is booked, ended by an error that it did not handle: 4.
func failed() *replaytest.Journal {
	return booked().Fail(journal.ResponseTerminal, 409, "conflict", "taken", false).Journal()
}

// undone is booked, ended by itself: 4.
func undone() *replaytest.Journal {
	return booked().Complete("2", "refund", "undo", `null`).Fail(journal.ResponseTerminal, 409, "conflict", "taken", true).Journal()
}

// doubted is a function whose effect an operator voids: 4 parked, 5 the operator, 6 the end.
// Its chain is the start and the result of pay, both twice.
func doubted() *replaytest.Journal {
	return function().Effect("1", "pay", "guarded", `{"id":7}`).
		Fail(journal.ResponseParked, 500, "confirm", "pay: the provider does not know it", false).
		Operate("retry", &journal.Effect{Name: "pay", Class: "guarded", Position: "1"}).
		Record(journal.KindEffectStarted, journal.Effect{Name: "pay", Class: "guarded", Position: "1", N: 1}).
		Record(journal.KindEffectCompleted, journal.Effect{Name: "pay", Class: "guarded", Position: "1", N: 1, Result: []byte(`{"id":8}`)}).
		Succeed(`{"ok":true}`).Journal()
}

// order is the start of the job that runs the compensations of a request.
func order(request journal.GUID) journal.Dispatched {
	id := collation.UndoID(request)
	return journal.Dispatched{GUID: id.Start(), Kind: journal.MessageStart, DAD: ",0", Job: id}
}

// booking is booked, suspended: 4.
func booking() *replaytest.Journal { return booked().Suspend(nap).Journal() }

// done is booked, and succeeds: 4.
func done() *replaytest.Journal { return booked().Succeed(`1`).Journal() }

// lost is a function without compensations that fails: 4.
func lost() *replaytest.Journal {
	return function().Effect("1", "pay", "guarded", `{"id":7}`).
		Fail(journal.ResponseTerminal, 409, "conflict", "taken", false).Journal()
}
