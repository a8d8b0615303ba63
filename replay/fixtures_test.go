package replay_test

import (
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

func build(b *flow.Builder) *flow.Flow {
	f, err := b.Build()
	if err != nil {
		panic(err)
	}
	return f
}

func begin(name string) *flow.Builder { return flow.New(name).Version("1").Trigger("t") }

func answer(output string) *journal.Response {
	return &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(output)}
}

func refusal(kind journal.ResponseKind) *journal.Response {
	return &journal.Response{Kind: kind, Code: 503, Error: &journal.Failure{Class: "error", Message: "no luck"}}
}

// looped is t → p (a pivot) → w, which goes round by c as often as told, then → x. For two
// rounds: 3 p; 4, 5 w; 6 c; 7 p again; 8, 9 w; 10 c; 11 p; 12, 13 w; 14 x.
func looped(rounds int) *replaytest.Journal {
	n := 0
	return replaytest.Honest(replaytest.Options{
		Flow: build(begin("looped").Hook("p", flow.Input(0)).Worker("w", "work").Cycle("c", "p").Hook("x").
			Transition("t", "p").Transition("p", "w").
			Transition("w", "c", flow.When("w.output.again")).Transition("w", "x", flow.When("!w.output.again"))),
		Respond: func(string, int) *journal.Response {
			n++
			return answer(fmt.Sprintf(`{"again":%t}`, n <= rounds))
		},
	})
}

func straight() *replaytest.Journal { return looped(0) }
func twice() *replaytest.Journal    { return looped(2) }

// bent is t → p (a pivot) → w → c, whose second pass has no children: 6 is the
// cycle, 7 that pass, which closes.
func bent() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{
		Flow: build(begin("bent").Hook("p", flow.Input(0)).Worker("w", "work").Cycle("c", "p", flow.Input(1)).
			Transition("t", "p").Transition("p", "w", flow.When("p.output == 0")).Transition("w", "c")),
	})
}

// listed is t → w with three elements, two at a time; the second one fails once. 3 the Leg1; 4
// element 0; 5 the failed attempt of element 1; 6 element 2; 7 element 1.
func listed() *replaytest.Journal { return listedUpTo(0) }

// oneListed is listed up to 4.
func oneListed() *replaytest.Journal { return listedUpTo(3) }

func listedUpTo(steps int) *replaytest.Journal {
	n := 0
	return replaytest.Honest(replaytest.Options{
		Flow: build(begin("listed").Worker("w", "work", flow.Each("[1, 2, 3]"), flow.Parallel(2)).Transition("t", "w")),
		Respond: func(string, int) *journal.Response {
			if n++; n == 2 {
				return refusal(journal.ResponseFailedAttempt)
			}
			return answer(fmt.Sprint(n))
		},
		Steps: steps,
	})
}

// raced is t → h → w, up to the end of h, which sleeps, is bounded, and waits for a signal that
// tell, beside it, sends. 3 h; 4 tell; 5 the signal.
func raced() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Flow: build(begin("raced").
		Hook("h", flow.WaitFor("go", "k1"), flow.Sleep("24h"), flow.Within(48*time.Hour)).Signal("tell", "go", "k1").
		Worker("w", "work").Transition("t", "h").Transition("t", "tell").Transition("h", "w")), Steps: 5})
}

// slept is t → h → w, up to the end of h, which sleeps and waits for a signal that does not
// come; o, beside it, sleeps and waits longer. 3 h; 4 o; 5 the timer of h.
func slept() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Flow: build(begin("slept").
		Hook("h", flow.WaitFor("go", "k1"), flow.Sleep("24h")).Hook("o", flow.WaitFor("go", "k2"), flow.Sleep("48h")).
		Worker("w", "work").Transition("t", "h").Transition("t", "o").Transition("h", "w")), Steps: 4})
}

// ticked is t → h → w, where h repeats. 3 h; 4 a pass; 5, 6 w; 7 a pass; 8, 9 w; 10 the signal
// that ends h; 11, 12 w.
func ticked() *replaytest.Journal { return tickedUpTo(0) }

// oneTicked is ticked up to 4.
func oneTicked() *replaytest.Journal { return tickedUpTo(3) }

func tickedUpTo(steps int) *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{
		Flow: build(begin("ticked").Hook("h", flow.WaitFor("tick", "k"), flow.Repeat()).Worker("w", "work").
			Transition("t", "h").Transition("h", "w")),
		Signal: func(_ string, number int) int {
			if number < 3 {
				return 202
			}
			return 200
		},
		Steps: steps,
	})
}

// awaiting is t → a, which awaits a child that fails once, with the children: 3 a; 4 the first
// outcome; 5 the second. In a child, 4 closes.
func awaiting(steps int) []*replaytest.Journal {
	n := 0
	return replaytest.Family(replaytest.Options{
		Flow: build(begin("awaiting").Await("a", "child", flow.Retry{Attempts: 2}, flow.Within(time.Hour)).Transition("t", "a")),
		Others: []*flow.Flow{
			build(begin("child").Worker("w", "work", flow.Retry{Attempts: 1}).Transition("t", "w").Output("${ w.output }")),
		},
		Respond: func(string, int) *journal.Response {
			if n++; n == 1 {
				return refusal(journal.ResponseTerminal)
			}
			return answer(`{"ok":true}`)
		},
		Steps: steps,
	})
}

func awaited() *replaytest.Journal  { return awaiting(0)[0] }
func retrying() *replaytest.Journal { return awaiting(7)[0] } // up to 4
func child() *replaytest.Journal    { return awaiting(0)[1] }

// joined is t → f → a, b, c → j, where c is not taken. 4 f, with the skipped arrival; 5 a; 6 b,
// which arrives; 7 a, which dispatches j; 8, 9 j.
func joined() *replaytest.Journal { return joinedIn("normal") }

// met is joined with every possible Leg1 folded.
func met() *replaytest.Journal { return joinedIn("fold") }

func joinedIn(mode string) *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Mode: modes[mode], Flow: build(begin("joined").
		Worker("f", "work").Worker("a", "work").Hook("b").Worker("c", "work").Worker("j", "work").Transition("t", "f").
		Transition("f", "a").Transition("f", "b").Transition("f", "c", flow.When("f.output.turn > 1")).
		Transition("a", "j").Transition("b", "j").Transition("c", "j"))})
}

// halted is t → w → stop, an interrupt of its own job, beside a hook that waits and a child
// that has begun. 4 h; 5 the child; 7 stop; 8 the child's outcome.
func halted() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{
		Flow: build(begin("halted").Worker("w", "work").Interrupt("stop", flow.Reason("enough"), flow.Descend()).
			Hook("h", flow.WaitFor("go", "k1"), flow.Sleep("24h")).Await("a", "child").
			Transition("t", "w").Transition("w", "stop").Transition("t", "h").Transition("t", "a")),
		Others: []*flow.Flow{build(begin("child").Hook("h", flow.Sleep("1h")).Transition("t", "h"))},
	})
}

// stopping is a job that awaits a child and interrupts it, and the child, where 4 is the
// interrupt.
func stopping() []*replaytest.Journal {
	return replaytest.Family(replaytest.Options{
		Flow: build(begin("stopping").Await("a", "child", flow.ChildID("victim")).Hook("h", flow.Sleep("1m")).
			Interrupt("stop", flow.Target("victim"), flow.Code(409)).
			Transition("t", "a").Transition("t", "h").Transition("h", "stop")),
		Others: []*flow.Flow{build(begin("child").Hook("h", flow.WaitFor("go", "k1"), flow.Sleep("1h")).Transition("t", "h"))},
	})
}

func stopped() *replaytest.Journal { return stopping()[1] }

// repeatedFailure is a repeating hook beside a worker that fails the job.
func repeatedFailure() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{
		Flow: build(begin("repeated").Hook("h", flow.WaitFor("tick", "k"), flow.Repeat()).
			Worker("w", "work", flow.Retry{Attempts: 1}).Transition("t", "h").Transition("t", "w")),
		Respond: func(string, int) *journal.Response { return refusal(journal.ResponseTerminal) },
	})
}

// second makes every choice 1: 2 attempts, and two idempotent effects for each request,
// completed in time.
func second(n int) int { return min(1, n-1) }

// line is t → w1 → w2 → w3, all successful, with effects, in 8 entries: 1 created, 2 start, 3
// and 4 w1, 5 and 6 w2, 7 and 8 w3, which closes.
func line() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Choose: second, Activities: 3, Chain: true, Effects: true})
}

// plain is line without effects.
func plain() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Choose: second, Activities: 3, Chain: true})
}

// retried is plain with a failed attempt of w1: entry 4 is its pending response, 5
// the terminal one.
func retried() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{
		Choose: second, Activities: 3, Chain: true,
		Respond: func(activity string, turn int) *journal.Response {
			if activity != "w1" || turn > 1 {
				return nil
			}
			return &journal.Response{Kind: journal.ResponseFailedAttempt, Code: 500, Error: &journal.Failure{Class: "error", Message: "no"}}
		},
	})
}

// stepped is plain with a commit at every mark: 3 and 4 are the Leg1 of w1.
func stepped() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Choose: second, Activities: 3, Chain: true, Mode: modes["stepwise"]})
}

// halfway is line after 5 entries: the request of w2 is open.
func halfway() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Choose: second, Activities: 3, Chain: true, Effects: true, Steps: 4})
}

// folded is two activities, one after the other, whose Leg1 are folded into the entries before:
// 1 created, 2 the trigger, 3 the first, 4 the second, which closes.
func folded() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Activities: 2, Chain: true, Mode: modes["fold"]})
}

// awaitingOne is awaiting, up to the start of its child.
func awaitingOne() *replaytest.Journal { return awaiting(2)[0] }

// midstep is plain with a commit at every mark, in the midst of a message: it has its receipt.
func midstep() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Choose: second, Activities: 3, Chain: true, Mode: modes["stepwise"], Steps: 5})
}

// wake is the wake-up that a signal's delivery to the wait writes.
func wake(w *collation.Wait, signal journal.GUID, code int) collation.Row {
	row, _ := w.Deliver(&collation.Signal{GUID: signal, Topic: w.Topic, Key: w.Key, Code: code, Payload: []byte(`null`)}, 1, collation.Mode{})
	return row
}

func arrive(s *replay.Stored, r collation.Row) { s.Rows[r.GUID] = r }

// alter changes one value of a map, found by a test on it.
func alter[K comparable, V any](m map[K]V, want func(K, V) bool, change func(*V)) {
	for k, v := range m {
		if want(k, v) {
			change(&v)
			m[k] = v
			return
		}
	}
	panic("nothing to edit")
}

func isRequest(_ journal.GUID, r collation.Row) bool { return r.Kind == journal.MessageRequest }

// failing is a job that fails while the request of another branch is open; the close cancels
// that request (C15).
func failing() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{
		Activities: 2, // both children of t
		Respond: func(string, int) *journal.Response {
			return &journal.Response{Kind: journal.ResponseTerminal, Code: 409, Error: &journal.Failure{Class: "error", Message: "no"}}
		},
	})
}

// held is a worker whose effect is parked and then retried by an operator: 4 the parked
// response, 5 the operator.
func held() *replaytest.Journal {
	n := 0
	return replaytest.Honest(replaytest.Options{
		Activities: 1, Choose: second,
		Respond: func(string, int) *journal.Response {
			if n++; n > 1 {
				return nil
			}
			return &journal.Response{Kind: journal.ResponseParked, Code: 500, Error: &journal.Failure{Class: "parked", Message: "unknown"}}
		},
	})
}

// staled is plain, and an interrupt that was held, that somebody released after the close, and
// that is stale then: 9 to 11. One that the journal did not mention leaves no entry (W12).
func staled() *replaytest.Journal {
	interrupt := journal.GUID{5}
	row := journal.Updated{GUID: interrupt, Kind: journal.MessageInterrupt, NextAt: 1}
	held := row
	held.NextAt, held.Held = 0, collation.HeldStuck
	return plain().Lie(func(entries []*journal.Entry) []*journal.Entry {
		for i, e := range []*journal.Entry{
			{Kind: journal.KindDeadLetter, GUID: interrupt, Updated: []journal.Updated{held}, Trouble: &journal.Trouble{Reason: "stuck", Message: "refused"}},
			{
				Kind: journal.KindOperator, GUID: collation.OperatorGUID(interrupt, "retry", 0), Updated: []journal.Updated{row},
				Operator: &journal.Operator{Action: "retry", Who: "ann", Reason: "looked into it"},
			},
			{Kind: journal.KindStale, GUID: interrupt, Ended: interrupt},
		} {
			e.Job, e.Seq, e.DAD = entries[0].Job, int64(i)+9, ",0"
			entries = append(entries, e)
		}
		return entries
	})
}
