package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// suspensionLies are about what suspensions name, register and cancel.
var suspensionLies = map[string]lie{
	"V13 a timer that is not registered": {suspended, replay.V13, 4, `waits for sleep "nap", but no timer is registered`, func(main func(int) *journal.Entry) {
		main(4).Dispatched = main(4).Dispatched[1:]
	}},
	"V13 a bound that is not registered": {suspended, replay.V13, 4, `waits for signal "ok", but no bound is registered`, func(main func(int) *journal.Entry) {
		d := main(4).Dispatched
		main(4).Dispatched = []journal.Dispatched{d[0], d[2]}
	}},
	"V13 a child that is not ordered": {suspended, replay.V13, 4, `waits for child "inv", but no start is registered`, func(main func(int) *journal.Entry) {
		main(4).Dispatched = main(4).Dispatched[:2]
	}},
	"V13 a wait that is not registered": {suspended, replay.V13, 4, `waits for signal "ok", but no wait is registered`, func(main func(int) *journal.Entry) {
		main(4).Waits = nil
	}},
	"V13 a wait for another signal": {suspended, replay.V13, 4, `the function waits for signal order.ok with key "order-42"`, func(main func(int) *journal.Entry) {
		main(4).Waits[0].Key = "order-43"
	}},
	"V13 a wait that repeats": {suspended, replay.V13, 4, "repeats: true", func(main func(int) *journal.Entry) { main(4).Waits[0].Repeat = true }},
	"V13 another time": {suspended, replay.V13, 4, `the timer of sleep "nap" is due 3600000001 µs after the entry, not 3600000000`, func(main func(int) *journal.Entry) {
		main(4).Dispatched[0].At++
	}},
	"V13 another bound": {suspended, replay.V13, 4, `the bound of signal "ok" is due`, func(main func(int) *journal.Entry) { main(4).Dispatched[1].At-- }},
	"V13 a child that is due": {suspended, replay.V13, 4, `child "inv" says when it is due`, func(main func(int) *journal.Entry) {
		main(4).Dispatched[2].At = main(4).Time
	}},
	"V10 a timer dispatched again": {moved, replay.V10, 6, "it stands since entry 4", func(main func(int) *journal.Entry) {
		main(6).Response.Pauses = append(main(6).Response.Pauses, main(4).Response.Pauses[1])
		main(6).Dispatched = append(main(6).Dispatched, main(4).Dispatched[1])
		main(6).Cancelled = nil
		main(8).Dispatched, main(8).Waits = nil, nil
	}},
	"V13 a wait registered again": {moved, replay.V13, 6, "is registered again, it stands since entry 4", func(main func(int) *journal.Entry) {
		main(6).Response.Pauses = append(main(6).Response.Pauses, main(4).Response.Pauses[1])
		main(6).Waits = main(4).Waits
		main(6).Cancelled = nil
		main(8).Dispatched, main(8).Waits = nil, nil
	}},
	"V10 a sleep that came, again": {moved, replay.V10, 8, "is dispatched again; it ended at entry 5", func(main func(int) *journal.Entry) {
		again := main(4).Dispatched[0]
		again.At = main(8).Time + hour
		main(8).Response.Pauses = append(main(8).Response.Pauses, main(4).Response.Pauses[0])
		main(8).Dispatched = append(main(8).Dispatched, again)
	}},
	"V13 named twice": {suspended, replay.V13, 4, `names sleep "nap" at 1 twice`, func(main func(int) *journal.Entry) {
		main(4).Response.Pauses = append(main(4).Response.Pauses, main(4).Response.Pauses[0])
	}},
	"V13 a suspension for nothing": {held, replay.V13, 4, "names 0 things", func(main func(int) *journal.Entry) {
		main(4).Response.Kind, main(4).Response.Error, main(4).Response.Code = journal.ResponseSuspended, nil, 200
		main(4).Updated[0].Held = ""
	}},
	"V13 a failed attempt that waits": {retried, replay.V13, 4, "a response of kind failed names 1 things", func(main func(int) *journal.Entry) {
		main(4).Response.Pauses = []journal.Pause{nap}
	}},
	"V13 a timer that stays": {moved, replay.V13, 6, `waits for signal "ok" no more, its timer`, func(main func(int) *journal.Entry) {
		main(6).Cancelled = main(6).Cancelled[:1]
		main(8).Dispatched = nil
	}},
	"V13 a timer that stays at the end": {invoiced, replay.V13, 6, `waits for sleep "nap" no more, its timer`, func(main func(int) *journal.Entry) {
		main(6).Cancelled = main(6).Cancelled[1:]
	}},
	"V13 what is named is taken back": {moved, replay.V13, 6, `stands for signal "ok"`, func(main func(int) *journal.Entry) {
		main(6).Response.Pauses = append(main(6).Response.Pauses, main(4).Response.Pauses[1])
		main(8).Dispatched, main(8).Waits = nil, nil
	}},
	"V11 a timer of another name": {suspended, replay.V11, 4, "does not derive from message", func(main func(int) *journal.Entry) {
		main(4).Dispatched = append(main(4).Dispatched, journal.Dispatched{
			GUID: collation.PauseGUID(main(4).Response.Request, journal.PauseRef{Kind: journal.PauseSleep, Name: "other", Position: "9"}), Kind: journal.MessageWakeUp,
			Activity: "fn", DAD: main(4).DAD, At: main(4).Time,
		})
	}},
	"V11 a timer of another activity": {suspended, replay.V11, 4, "for t ,0,0 does not derive", func(main func(int) *journal.Entry) {
		main(4).Dispatched[0].Activity = "t"
	}},
	"V11 a wait of another name": {suspended, replay.V11, 4, "derives from no Leg1", func(main func(int) *journal.Entry) {
		main(4).Waits = append(main(4).Waits, journal.Wait{
			GUID: collation.PauseGUID(main(4).Response.Request, journal.PauseRef{Kind: journal.PauseSignal, Name: "other", Position: "9"}), Topic: "x",
		})
	}},
	"V11 a child of another name": {suspended, replay.V11, 4, "does not derive from message", func(main func(int) *journal.Entry) {
		id := collation.NamedChild(main(4).Response.Request, journal.PauseRef{Kind: journal.PauseChild, Name: "other", Position: "9"})
		main(4).Dispatched = append(main(4).Dispatched, journal.Dispatched{GUID: id.Start(), Kind: journal.MessageStart, DAD: ",0", Job: id})
	}},
	"V10 a suspension that goes on at once": {suspended, replay.V10, 4, "sent out again: true; something that it names has come: false", func(main func(int) *journal.Entry) {
		main(4).Updated[0].NextAt = main(4).Time
	}},
	"V10 a suspension that sleeps on what came": {awake, replay.V10, 7, "sent out again: false; something that it names has come: true", func(main func(int) *journal.Entry) {
		main(7).Updated[0].NextAt = 0
	}},
	"V12 a suspension that raises the attempt": {suspended, replay.V12, 4, "the entry allows turn 2, attempt 1", func(main func(int) *journal.Entry) {
		main(4).Updated[0].Attempt = 2
	}},
	"V16 a kind of pause": {suspended, replay.V16, 4, `unknown kind of pause "dream"`, func(main func(int) *journal.Entry) {
		p := nap
		p.Kind, p.Name = "dream", "later"
		main(4).Response.Pauses = append(main(4).Response.Pauses, p)
	}},
}

// wakeLies are about wake-ups.
var wakeLies = map[string]lie{
	"V13 what never was": {rested, replay.V13, 5, `ends sleep "nap" at 9, it ends sleep "nap" at 1`, func(main func(int) *journal.Entry) {
		main(5).Response.Of.Position = "9"
	}},
	"V13 another name": {rested, replay.V13, 5, `ends sleep "rest" at 1`, func(main func(int) *journal.Entry) { main(5).Response.Of.Name = "rest" }},
	"V13 it does not say what it ends": {rested, replay.V13, 5, "says what it ends: false", func(main func(int) *journal.Entry) {
		main(5).Response.Of = nil
	}},
	"V13 a response that ends something": {plain, replay.V13, 4, "a response of kind terminal says what it ends: true", func(main func(int) *journal.Entry) {
		main(4).Response.Of = &journal.PauseRef{Kind: journal.PauseSleep, Name: "nap"}
	}},
	"V11 another request": {rested, replay.V11, 5, "ends nothing that the function of request", func(main func(int) *journal.Entry) {
		main(5).Response.Request[0] ^= 1
	}},
	"V11 an element that is none": {rested, replay.V11, 5, "but answers no request", func(main func(int) *journal.Entry) { main(5).Response.Element = 1 }},
	"V12 a turn of a wake":        {rested, replay.V12, 5, "the response is to turn 1", func(main func(int) *journal.Entry) { main(5).Response.Turn = 1 }},
	"V13 a signal that woke a sleep": {rested, replay.V13, 5, `is ended by "timer"`, func(main func(int) *journal.Entry) {
		main(5).Response.By, main(5).Response.Signal = journal.BySignal, journal.GUID{4}
	}},
	"V13 no signal":     {signalled, replay.V13, 5, `is ended by "signal"`, func(main func(int) *journal.Entry) { main(5).Response.Signal = journal.GUID{} }},
	"V13 a number":      {signalled, replay.V13, 5, "number 1", func(main func(int) *journal.Entry) { main(5).Response.Number = 1 }},
	"V11 another child": {invoiced, replay.V11, 5, "the outcome says child", func(main func(int) *journal.Entry) { main(5).Response.Child[0] ^= 1 }},
	"V13 the bound stays": {signalled, replay.V13, 5, `signal "ok" has come, its rival`, func(main func(int) *journal.Entry) {
		main(5).Cancelled = nil
	}},
	"V13 the wait stays": {timedOut, replay.V13, 5, `signal "ok" has come, its rival`, func(main func(int) *journal.Entry) { main(5).Cancelled = nil }},
	"V13 another's timer is taken": {signalled, replay.V13, 5, `stands for sleep "nap"`, func(main func(int) *journal.Entry) {
		main(5).Cancelled = append(main(5).Cancelled, main(4).Dispatched[0].GUID)
	}},
	"V10 a request that sleeps on": {rested, replay.V10, 5, "row", func(main func(int) *journal.Entry) { main(5).Updated[0].NextAt = 0 }},
	"V10 a request that is sent out twice": {running, replay.V10, 6, "is updated; due is element -1", func(main func(int) *journal.Entry) {
		main(6).Updated = main(5).Updated
	}},
	"V12 an answer in its sleep": {moved, replay.V12, 6, "is answered in turn 2 by a response of kind suspended while it sleeps", func(main func(int) *journal.Entry) {
		main(5).Updated = nil
	}},
	"V4 a wake without its digit": {rested, replay.V4, 5, "positions 8–15 (Leg2 entries) goes 1 → 1", func(main func(int) *journal.Entry) {
		main(5).Ledger--
	}},
	"V5 a wake's ordinal": {rested, replay.V5, 5, "the next of fn ,0,0 is 2", func(main func(int) *journal.Entry) { main(5).Receipt++ }},
	"V6 a wake that ends an obligation": {rested, replay.V6, 5, "an obligation ended: false", func(main func(int) *journal.Entry) {
		*main(5).Semaphore = 2
	}},
}

// TestLiesAboutFunctions: exactly one check finds each lie about suspensions and wake-ups (2.5,
// E12, E13).
func TestLiesAboutFunctions(t *testing.T) {
	t.Parallel()
	requireLies(t, suspensionLies, wakeLies)
}

// E13: a wake-up that is refused although the function waits for it is lost.
func TestLostWakesAreFound(t *testing.T) {
	t.Parallel()
	forged := rested().Lie(func(entries []*journal.Entry) []*journal.Entry {
		e := entries[4]
		e.Kind, e.Marks, e.Ledger, e.Receipt, e.Semaphore, e.Response, e.Updated = journal.KindStale, nil, 0, 0, nil, nil, nil
		return entries
	})
	requireOnly(t, forged.Verify(false), replay.V13, 5, `sleep "nap" is refused, for which request`)
}

// E12: what was cancelled may be named, and registered, again.
func TestNamedAgainIsNoFault(t *testing.T) {
	t.Parallel()
	j := moved()
	requireClean(t, j, true)
	e := j.Entries()
	require.Equal(t, e[3].Waits, e[7].Waits)
	require.Equal(t, e[3].Dispatched[1].GUID, e[7].Dispatched[0].GUID)
	child := function().Suspend(nap, inv).Wake("nap").Suspend(later).Wake("later").Suspend(inv).Journal()
	requireClean(t, child, true)
}

// A wait that is left without being cancelled has its signal on its way: the tables show the
// signal, a later entry mentions it, or a close cancels it.
func TestSignalsAdrift(t *testing.T) {
	t.Parallel()
	f := function().Suspend(nap, ok).Wake("nap")
	f.Send("order.ok", "order-42", 200, `{}`)
	wake := collation.PauseGUID(f.Request(), ok.PauseRef)
	requireClean(t, f.Journal(), true)
	j := f.Suspend(later).Journal()
	requireClean(t, j, true)
	requireClean(t, j, false)

	early := crossed().Lie(func(entries []*journal.Entry) []*journal.Entry { return entries[:6] })
	early.Stored.Rows[wake] = collation.Row{GUID: wake, Kind: journal.MessageWakeUp, Activity: "fn", DAD: ",0,0"}
	delete(early.Stored.Receipts, wake)
	requireClean(t, early, true)
	delete(early.Stored.Rows, wake)
	requireOnly(t, early.Verify(true), replay.V13, 6, "neither taken back nor is there a signal on its way")

	closing := function().Suspend(nap, ok).Wake("nap").Suspend(later).Interrupt("enough").Journal()
	requireClean(t, closing, true)
	left := closing.Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[5].Cancelled = entries[5].Cancelled[1:] // the wait
		return entries
	})
	requireOnly(t, left.Verify(false), replay.V13, 7, "neither taken back nor is there a signal that the close cancels")
	took := closing.Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[5].Cancelled = entries[5].Cancelled[1:]
		entries[6].CancelledByClose = append(entries[6].CancelledByClose, wake)
		return entries
	})
	requireClean(t, took, false)
}
