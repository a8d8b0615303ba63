package replay_test

import (
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
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
