package replay_test

import (
	"testing"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// waitLies are about timers, waits and signals.
var waitLies = map[string]lie{
	"V10 cancelled from nowhere": {raced, replay.V10, 5, "is cancelled, but does not stand; it was never dispatched", func(main func(int) *journal.Entry) {
		main(5).Cancelled = append(main(5).Cancelled, journal.GUID{9})
	}},
	// Only a close may cancel the wake-up of a repeating hook that no entry has told of.
	"V10 cancelled from nowhere, beside a hook that repeats": {ticked, replay.V10, 10, "is cancelled, but does not stand; it was never dispatched", func(main func(int) *journal.Entry) {
		main(10).Cancelled = append(main(10).Cancelled, journal.GUID{9})
	}},
	"V10 a timer cancelled by no close": {raced, replay.V10, 4, "by an entry that closes nothing", func(main func(int) *journal.Entry) {
		main(4).CancelledByClose = []journal.GUID{main(5).Cancelled[0]}
	}},
	"V11 another signal sent": {raced, replay.V11, 4, "does not derive from message", func(main func(int) *journal.Entry) {
		main(4).Dispatched[0].GUID[0] ^= 1
	}},
	"V11 a signal to the own job": {raced, replay.V11, 4, "is addressed to h ,0 of another job", func(main func(int) *journal.Entry) {
		main(4).Dispatched[0].Activity = "h"
	}},
	"V11 a timer of another Leg1": {raced, replay.V11, 3, "wakeup", func(main func(int) *journal.Entry) {
		main(3).Dispatched[0].GUID[0] ^= 1
		main(5).Cancelled[0][0] ^= 1
	}},
	"V11 a timer of another activity": {raced, replay.V11, 3, "for tell ,0,0 does not derive", func(main func(int) *journal.Entry) {
		main(3).Dispatched[0].Activity = "tell"
		main(5).Cancelled = main(5).Cancelled[1:]
	}},
	"V11 a wait of another Leg1": {raced, replay.V11, 3, "derives from no Leg1", func(main func(int) *journal.Entry) {
		main(3).Waits[0].GUID[0] ^= 1
	}},
	"V11 a signal nobody waits for": {raced, replay.V11, 5, "registered no wait", func(main func(int) *journal.Entry) { main(3).Waits = nil }},
	"V11 another signal's wake-up": {ticked, replay.V11, 7, "the wake-up by signal", func(main func(int) *journal.Entry) {
		main(7).Response.Signal[0] ^= 1
	}},
	"V13 a timer stays": {raced, replay.V13, 5, "its wakeup row", func(main func(int) *journal.Entry) {
		main(5).Cancelled = main(5).Cancelled[1:]
	}},
	"V13 a bound stays": {raced, replay.V13, 5, "its answer row", func(main func(int) *journal.Entry) {
		main(5).Cancelled = main(5).Cancelled[:1]
	}},
	"V13 a wait stays": {slept, replay.V13, 5, "its wait", func(main func(int) *journal.Entry) { main(5).Cancelled = nil }},
	"V13 another's timer": {slept, replay.V13, 5, "stands for o ,0,0 and is cancelled by the end of h ,0,0", func(main func(int) *journal.Entry) {
		main(5).Cancelled = append(main(5).Cancelled, main(4).Dispatched[0].GUID)
	}},
	"V13 cancelled by a pass": {ticked, replay.V13, 4, "a message that ends no activity", func(main func(int) *journal.Entry) {
		main(4).Cancelled = []journal.GUID{main(3).Waits[0].GUID}
	}},
	"V10 a wait consumed and cancelled": {raced, replay.V10, 5, "ends twice in this entry", func(main func(int) *journal.Entry) {
		main(5).Cancelled = append(main(5).Cancelled, main(3).Waits[0].GUID)
	}},
	"V13 a wait registered twice": {raced, replay.V13, 3, "is registered twice", func(main func(int) *journal.Entry) {
		main(3).Waits = append(main(3).Waits, main(3).Waits[0])
	}},
	"V13 a signal consumed twice": {ticked, replay.V13, 7, "before, at entry 4", func(main func(int) *journal.Entry) {
		main(7).Response.Signal = main(4).Response.Signal
	}},
	"V13 a number twice": {ticked, replay.V13, 7, "signal 1 of h ,0,0 again, it was consumed at entry 4", func(main func(int) *journal.Entry) {
		main(7).Response.Number = 1
	}},
	"V13 no number": {ticked, replay.V13, 4, "without a number", func(main func(int) *journal.Entry) { main(4).Response.Number = 0 }},
	"V13 the last is not the last": {ticked, replay.V13, 10, "signal 5 ends h ,0,0, 2 were consumed before", func(main func(int) *journal.Entry) {
		main(10).Response.Number = 5
	}},
	"V13 a number of a single signal": {raced, replay.V13, 5, "signal 1 of a wait that takes one", func(main func(int) *journal.Entry) {
		main(5).Response.Number = 1
	}},
	"V13 a wake-up by no signal": {raced, replay.V13, 5, "is that of a timer", func(main func(int) *journal.Entry) {
		main(5).Response.Signal = journal.GUID{}
	}},
	"V13 a timer's signal": {slept, replay.V13, 5, "is that of a timer", func(main func(int) *journal.Entry) {
		main(5).Response.By, main(5).Response.Signal = journal.BySignal, journal.GUID{4}
	}},
	"V13 a worker's signal": {plain, replay.V13, 4, "says that signal", func(main func(int) *journal.Entry) {
		main(4).Response.By = journal.ByTimer
	}},
	"V13 a sender of no signal": {slept, replay.V13, 5, `the entry says that "ann" sent it`, func(main func(int) *journal.Entry) {
		main(5).Response.Who = "ann"
	}},
	"V13 a sender of an answer": {plain, replay.V13, 4, `the entry says that "ann" sent it`, func(main func(int) *journal.Entry) {
		main(4).Response.Who = "ann"
	}},
	"V13 a pass of what does not repeat": {oneTicked, replay.V13, 4, "no signal of a repeating hook", func(main func(int) *journal.Entry) {
		main(3).Waits[0].Repeat = false
	}},
	"V13 a timer that is never due": {raced, replay.V13, 3, "is never due", func(main func(int) *journal.Entry) {
		main(3).Dispatched[0].At = 0
	}},
	"V13 a start that was due before": {plain, replay.V13, 1, "says when it is due", func(main func(int) *journal.Entry) { main(1).Dispatched[0].At = main(1).Time }},
	"V13 a request that is due":       {plain, replay.V13, 3, "says when it is due", func(main func(int) *journal.Entry) { main(3).Dispatched[0].At = 7 }},
	"V13 a wait after the close": {halted, replay.V13, 7, "the close leaves the wait", func(main func(int) *journal.Entry) {
		main(7).CancelledByClose = []journal.GUID{main(4).Dispatched[0].GUID}
	}},
	"V16 a waker": {slept, replay.V16, 5, `unknown waker "dog"`, func(main func(int) *journal.Entry) { main(5).Response.By = "dog" }},
}

// childLies are about awaits and their children.
var childLies = map[string]lie{
	"V7 no outcome": {child, replay.V7, 4, "send 0 outcomes, the parent awaits 1", func(main func(int) *journal.Entry) { main(4).Dispatched = nil }},
	"V7 another error than the worker's": {child, replay.V7, 4, "its closing message brought", func(main func(int) *journal.Entry) {
		main(4).Close.Error.Message = "it rained"
	}},
	"V10 a start taken back again": {awaited, replay.V10, 5, "it was sent to another job at entry 3", func(main func(int) *journal.Entry) {
		main(5).Cancelled = append(main(5).Cancelled, main(3).Dispatched[0].GUID)
	}},
	"V11 another child started": {awaited, replay.V11, 3, "does not derive from message", func(main func(int) *journal.Entry) {
		main(3).Dispatched[0].GUID[0] ^= 1
		main(3).Dispatched[0].Job[0] ^= 1
	}},
	"V11 a start that is not the child's": {awaited, replay.V11, 4, "does not derive from message", func(main func(int) *journal.Entry) {
		main(4).Dispatched[0].GUID[0] ^= 1
	}},
	"V11 an outcome of nobody": {awaited, replay.V11, 5, "that of no child", func(main func(int) *journal.Entry) {
		main(5).GUID[0] ^= 1
		main(5).Ended = main(5).GUID
	}},
	"V11 another child's outcome": {awaited, replay.V11, 5, "it is that of", func(main func(int) *journal.Entry) {
		main(5).Response.Child = main(4).Response.Child
	}},
	"V11 an outcome to another job": {child, replay.V11, 4, "does not derive from message", func(main func(int) *journal.Entry) {
		main(4).Dispatched[0].Job[0] ^= 1
	}},
	"V11 a child of another turn": {child, replay.V11, 1, "the child of turn 2", func(main func(int) *journal.Entry) { main(1).Parent.Turn = 2 }},
	"V11 a start of another activity": {plain, replay.V11, 1, "for w9 ,0 does not derive", func(main func(int) *journal.Entry) {
		main(1).Dispatched[0].Activity = "w9"
	}},
	"V12 a child's turn": {awaited, replay.V12, 5, "to turn 1, attempt 2; the await is at turn 2, attempt 2", func(main func(int) *journal.Entry) {
		main(5).Response.Turn = 1
	}},
	"V12 a child's attempt": {awaited, replay.V12, 5, "to turn 2, attempt 1; the await is at turn 2, attempt 2", func(main func(int) *journal.Entry) {
		main(5).Response.Attempt = 1
	}},
	"V12 no further child": {retrying, replay.V12, 4, "starts 0 children, it has to start 1", func(main func(int) *journal.Entry) {
		main(4).Dispatched = nil
	}},
}

// stopLies are about interrupts.
var stopLies = map[string]lie{
	"V4 an own interrupt finalizes": {halted, replay.V4, 7, "position 1 (state) goes 0 → 2", func(main func(int) *journal.Entry) {
		main(7).Ledger += finalized
	}},
	"V4 an interrupt without the snapshot": {stopped, replay.V4, 4, "position 4 (snapshot) goes 0 → 0", func(main func(int) *journal.Entry) {
		main(4).Receipt -= hundredB
	}},
	"V6 abandoned by an own interrupt": {halted, replay.V6, 7, "1 abandoned", func(main func(int) *journal.Entry) { main(7).Abandoned = 1 }},
	"V6 abandoned by an interrupt":     {stopped, replay.V6, 4, "2 abandoned", func(main func(int) *journal.Entry) { main(4).Abandoned = 2 }},
	"V7 an interrupt that closes nothing": {stopped, replay.V7, 4, "closes nothing", func(main func(int) *journal.Entry) {
		e := main(4)
		e.Marks, e.Close, e.Abandoned, e.Dispatched, e.CancelledByClose = e.Marks[:2], nil, 0, nil, nil
		e.Semaphore = main(2).Semaphore
		e.Receipt -= hundredB + hundredM
	}},
	"V7 interrupted by a response": {plain, replay.V7, 8, "ends as interrupted", func(main func(int) *journal.Entry) {
		main(8).Close = &journal.Close{
			State: journal.JobInterrupted, Code: 410, Error: &journal.Failure{Class: "interrupted", Message: "no"},
		}
	}},
	"V7 an interrupt that fails the job": {halted, replay.V7, 7, "ends as failed", func(main func(int) *journal.Entry) {
		main(7).Close.State = journal.JobFailed
	}},
	"V7 interrupted without a reason": {stopped, replay.V7, 4, "ends as interrupted", func(main func(int) *journal.Entry) {
		main(4).Close.Error = nil
	}},
	"V10 a row after an interrupt": {halted, replay.V10, 7, "the close leaves the wakeup row", func(main func(int) *journal.Entry) {
		w := main(7).CancelledByClose
		for _, g := range w {
			if g == main(4).Waits[0].GUID {
				main(7).CancelledByClose = []journal.GUID{g}
			}
		}
	}},
	"V11 an interrupt of another child": {halted, replay.V11, 7, "does not derive from message", func(main func(int) *journal.Entry) {
		main(7).Dispatched[0].Job[0] ^= 1
	}},
	"V11 an interrupt of an activity": {stopped, replay.V11, 4, "is addressed to h", func(main func(int) *journal.Entry) {
		main(4).Activity = "h"
	}},
}

// TestLiesAboutWhatIsAwaited: exactly one check finds each lie about timers, waits, signals,
// children and interrupts (2.5, J11).
func TestLiesAboutWhatIsAwaited(t *testing.T) {
	t.Parallel()
	requireLies(t, waitLies, childLies, stopLies)
}
