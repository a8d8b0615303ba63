package replay_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// undoLies are about compensations, and who orders them (3.5).
var undoLies = map[string]lie{
	"V8 not ordered by a close": {refused, replay.V8, 5, "no job is ordered that runs them", func(main func(int) *journal.Entry) {
		main(5).Dispatched = nil
	}},
	"V8 not ordered by an answer": {failed, replay.V8, 4, "no job is ordered that runs them", func(main func(int) *journal.Entry) {
		main(4).Dispatched = nil
	}},
	"V8 ordered after a success": {done, replay.V8, 4, "its function has ended by itself", func(main func(int) *journal.Entry) {
		main(4).Dispatched = append(main(4).Dispatched, order(main(4).Response.Request))
	}},
	"V8 ordered after they ran": {undone, replay.V8, 4, "its function has ended by itself", func(main func(int) *journal.Entry) {
		main(4).Dispatched = append(main(4).Dispatched, order(main(4).Response.Request))
	}},
	"V8 none registered": {lost, replay.V8, 4, "it registered none", func(main func(int) *journal.Entry) {
		main(4).Dispatched = append(main(4).Dispatched, order(main(4).Response.Request))
	}},
	"V8 a success says that they ran": {done, replay.V8, 4, "with code 200 says that its compensations have run", func(main func(int) *journal.Entry) {
		main(4).Response.Undone = true
	}},
	"V10 ordered twice": {failed, replay.V10, 4, "dispatched twice by this entry", func(main func(int) *journal.Entry) {
		main(4).Dispatched = append(main(4).Dispatched, main(4).Dispatched[0])
	}},
	"V11 for another request": {failed, replay.V11, 4, "does not derive from message", func(main func(int) *journal.Entry) {
		main(4).Dispatched = append(main(4).Dispatched, order(main(4).GUID))
	}},
	"V11 for a request that goes on": {booking, replay.V11, 4, "does not derive from message", func(main func(int) *journal.Entry) {
		main(4).Dispatched = append(main(4).Dispatched, order(main(4).Response.Request))
	}},
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

// TestLiesAboutCompensations: exactly one check finds each lie about compensations.
func TestLiesAboutCompensations(t *testing.T) {
	t.Parallel()
	requireLies(t, undoLies)
}

// effectLies change the effect chain of a function, or drop entries of it.
var effectLies = map[string]struct {
	base   func() *replaytest.Journal
	seq    int64
	words  string
	change func(chain []*journal.Entry) []*journal.Entry
}{
	"compensations that did not run": {undone, 4, `says that the compensations of request`, func(chain []*journal.Entry) []*journal.Entry {
		return chain[:3]
	}},
	"a compensation that was not registered": {undone, 3, "ends without a start", func(chain []*journal.Entry) []*journal.Entry {
		return slices.Delete(chain, 2, 3)
	}},
	"a compensation that ran twice": {undone, 5, "has a result already", func(chain []*journal.Entry) []*journal.Entry {
		again := *chain[3]
		return append(chain, &again)
	}},
	"another position": {undone, 4, `at "9" began as "refund"`, func(chain []*journal.Entry) []*journal.Entry {
		chain[3].Effect.Position = "9"
		return chain
	}},
	"two calls at one position": {undone, 3, `stands at position 1, which is that of effect "pay"`, func(chain []*journal.Entry) []*journal.Entry {
		chain[2].Effect.Position, chain[3].Effect.Position = "1", "1"
		return chain
	}},
	"more than an effect": {undone, 3, "says more than that", func(chain []*journal.Entry) []*journal.Entry {
		chain[2].Abandoned = 1
		return chain
	}},
	"of another request": {undone, 3, "says more than that", func(chain []*journal.Entry) []*journal.Entry {
		chain[2].GUID[0] ^= 1
		return chain
	}},
	"taken back twice": {doubted, 4, "has a result already (not_done)", func(chain []*journal.Entry) []*journal.Entry {
		again := *chain[2]
		return slices.Insert(chain, 3, &again)
	}},
	"taken back by nobody": {undone, 3, "which no operator asked for", func(chain []*journal.Entry) []*journal.Entry {
		back := *chain[1]
		back.Kind = journal.KindEffectFailed
		x := *chain[1].Effect
		x.Result, x.Error = nil, &journal.Failure{Class: replay.ClassVoided}
		back.Effect = &x
		return slices.Insert(chain, 2, &back)
	}},
	"not done after it was done": {doubted, 3, "has a result already (completed)", func(chain []*journal.Entry) []*journal.Entry {
		chain[2].Effect.Error.Class = "error"
		return chain
	}},
}

// V8: what a function's effect chain says must agree with itself and with the main chain.
func TestLiesAboutFunctionsEffects(t *testing.T) {
	t.Parallel()
	for name, c := range effectLies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forged := c.base().Lie(func(entries []*journal.Entry) []*journal.Entry {
				at := slices.IndexFunc(entries, func(e *journal.Entry) bool { return !e.Chain.IsZero() })
				return shorten(append(entries[:at:at], c.change(entries[at:])...))
			})
			requireOnly(t, forged.Verify(false), replay.V8, c.seq, c.words)
		})
	}
}

// V8, V12: an operator speaks only of an effect that exists.
func TestLiesAboutOperatorsAndEffects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check  replay.Check
		seq    int64
		words  string
		change func(x *journal.Effect)
	}{
		"another name": {replay.V8, 5, `acted on effect "play"`, func(x *journal.Effect) { x.Name = "play" }},
		"another turn": {replay.V12, 5, "in turn 1, the request is in turn 2", func(x *journal.Effect) { x.Turn = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forged := doubted().Lie(func(entries []*journal.Entry) []*journal.Entry {
				c.change(entries[4].Effect)
				return entries
			})
			requireOnly(t, forged.Verify(false), c.check, c.seq, c.words)
		})
	}
	forged := doubted().Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[4].Effect = nil
		return entries
	})
	requireOnly(t, forged.Verify(false), replay.V8, 3, "which no operator asked for")
}

// V11: the id of a function's child cannot be derived from its own journal, and the report says
// so. That of compensations can.
func TestJobsOfFunctions(t *testing.T) {
	t.Parallel()
	family := replaytest.Family(replaytest.Options{
		Flow:   build(begin("caller").Worker("w", "work").Transition("t", "w")),
		Others: []*flow.Flow{build(begin("child").Hook("h", flow.Sleep("1h")).Transition("t", "h"))},
		Respond: func(activity string, turn int) *journal.Response {
			if activity != "w" || turn > 1 {
				return nil
			}
			return &journal.Response{Kind: journal.ResponseSuspended, Code: 200, Pauses: []journal.Pause{replaytest.Child("c", "1", "child", `1`)}}
		},
	})
	require.Len(t, family, 2)
	child := family[1]
	r := requireClean(t, child, false)
	require.Contains(t, r.Result(replay.V11).Note, "the name under which a function started it")
	require.Equal(t, journal.JobCompleted, requireClean(t, family[0], true).State)

	// The same without anybody waiting would be a job of compensations, which this is not.
	forged := child.Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[0].Parent.Awaited = false
		last := entries[len(entries)-1]
		last.Dispatched = nil
		return entries
	})
	requireOnly(t, forged.Verify(false), replay.V11, 1, "is for the compensations of request")
}
