package journal_test

import (
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/journal"
)

func entries() *rapid.Generator[*journal.Entry] {
	kinds := []journal.Kind{
		journal.KindCreated, journal.KindLeg1, journal.KindLeg2, journal.KindStale, journal.KindSignal,
		journal.KindInterrupt, journal.KindEffectStarted, journal.KindEffectCompleted, journal.KindEffectFailed,
		journal.KindDeadLetter, journal.KindOperator, journal.KindQuarantine, journal.KindExpired, journal.KindResumed,
	}
	strict := rapid.Int64Range(-canonical.MaxInt, canonical.MaxInt)
	return rapid.Custom(func(t *rapid.T) *journal.Entry {
		e := &journal.Entry{
			Job: journal.JobID(guids().Draw(t, "job")), Key: texts().Draw(t, "key"),
			Chain: guids().Draw(t, "chain"), Seq: strict.Draw(t, "seq"),
			Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), GUID: guids().Draw(t, "guid"),
			Activity: texts().Draw(t, "activity"), DAD: texts().Draw(t, "dad"),
			Abandoned: counts().Draw(t, "abandoned"), Input: payloads().Draw(t, "input"),
			Writer: texts().Draw(t, "writer"), Build: texts().Draw(t, "build"),
			Time: strict.Draw(t, "time"),
		}
		if e.Kind == journal.KindCreated {
			e.Space, e.Generation, e.Trace = texts().Draw(t, "space"), strict.Draw(t, "generation"), texts().Draw(t, "trace")
			e.Tags = lists(t, "tags", texts())
		}
		moves(t, e)
		facts(t, e)
		return e
	})
}

// moves draws the digits and rows that an entry changes.
func moves(t *rapid.T, e *journal.Entry) {
	marks := rapid.SampledFrom([]journal.Mark{journal.MarkEntered, journal.MarkWork, journal.MarkChildren, journal.MarkAfterClose})
	e.Marks = lists(t, "marks", marks)
	e.Ledger, e.Receipt = ledgers().Draw(t, "ledger"), ledgers().Draw(t, "receipt")
	e.Joins = lists(t, "joins", rapid.Custom(func(t *rapid.T) journal.LedgerMove {
		return journal.LedgerMove{
			Activity: texts().Draw(t, "activity"), DAD: texts().Draw(t, "dad"),
			After: ledgers().Draw(t, "after"), Arrivals: counts().Draw(t, "arrivals"),
		}
	}))
	e.Semaphore = optional(rapid.Int64Range(-canonical.MaxInt, canonical.MaxInt)).Draw(t, "semaphore")
	e.Dispatched = lists(t, "dispatched", rapid.Custom(func(t *rapid.T) journal.Dispatched {
		return journal.Dispatched{
			GUID: guids().Draw(t, "guid"), Kind: journal.MessageKind(texts().Draw(t, "kind")),
			Activity: texts().Draw(t, "activity"), DAD: texts().Draw(t, "dad"), Topic: texts().Draw(t, "topic"),
			Job: journal.JobID(guids().Draw(t, "job")), At: rapid.Int64().Draw(t, "at"),
			Input: journal.Sum(guids().Draw(t, "input")), Folded: ledgers().Draw(t, "folded"), Arrivals: counts().Draw(t, "arrivals"),
		}
	}))
	e.Updated = lists(t, "updated", rapid.Custom(func(t *rapid.T) journal.Updated {
		return journal.Updated{
			GUID: guids().Draw(t, "guid"), Kind: journal.MessageKind(texts().Draw(t, "kind")),
			Turn: counts().Draw(t, "turn"), Attempt: counts().Draw(t, "try"),
			NextAt: rapid.Int64().Draw(t, "next"), Held: texts().Draw(t, "held"),
		}
	}))
	e.Ended = guids().Draw(t, "ended")
	e.CancelledByClose = lists(t, "cancelled", guids())
	e.Repaired = lists(t, "repaired", rapid.Custom(func(t *rapid.T) journal.Difference {
		return journal.Difference{
			Table: texts().Draw(t, "table"), Row: texts().Draw(t, "row"), Column: texts().Draw(t, "column"),
			Stored: texts().Draw(t, "stored"), Journal: texts().Draw(t, "journal"),
		}
	}))
	e.Undelivered = lists(t, "undelivered", rapid.Custom(func(t *rapid.T) journal.Delivery {
		return journal.Delivery{
			Activity: texts().Draw(t, "activity"), DAD: texts().Draw(t, "dad"), Signal: guids().Draw(t, "signal"),
			Number: counts().Draw(t, "number"), Ends: rapid.Bool().Draw(t, "ends"), Who: texts().Draw(t, "who"),
		}
	}))
	e.Cancelled = lists(t, "cancelled", guids())
	e.Open = optional(counts()).Draw(t, "open")
	e.Elements = optional(rapid.Custom(func(t *rapid.T) journal.Elements {
		x := journal.Elements{Count: counts().Draw(t, "count"), Parallel: counts().Draw(t, "parallel")}
		for _, g := range lists(t, "inputs", guids()) {
			x.Inputs = x.Inputs.Append(journal.Sum(g))
		}
		return x
	})).Draw(t, "elements")
	e.Waits = lists(t, "waits", rapid.Custom(func(t *rapid.T) journal.Wait {
		return journal.Wait{
			GUID: guids().Draw(t, "guid"), Topic: texts().Draw(t, "topic"), Key: texts().Draw(t, "key"),
			Repeat: rapid.Bool().Draw(t, "repeat"),
		}
	}))
}

// facts draws what else an entry says.
func facts(t *rapid.T, e *journal.Entry) {
	failure := optional(failures())
	e.Response = optional(responses()).Draw(t, "response")
	e.Result = optional(rapid.Custom(func(t *rapid.T) journal.Result {
		return journal.Result{
			Code: counts().Draw(t, "code"), Output: payloads().Draw(t, "output"), Error: failure.Draw(t, "error"),
			By: journal.By(texts().Draw(t, "by")), Taken: optional(takens()).Draw(t, "taken"),
		}
	})).Draw(t, "result")
	e.Parent = optional(rapid.Custom(func(t *rapid.T) journal.Parent {
		return journal.Parent{
			Job: journal.JobID(guids().Draw(t, "job")), Activity: texts().Draw(t, "activity"),
			DAD: texts().Draw(t, "dad"), Leg1: guids().Draw(t, "leg1"), Turn: counts().Draw(t, "turn"),
			Awaited: rapid.Bool().Draw(t, "awaited"),
		}
	})).Draw(t, "parent")
	e.Close = optional(rapid.Custom(func(t *rapid.T) journal.Close {
		return journal.Close{
			State: journal.JobState(texts().Draw(t, "state")), Code: counts().Draw(t, "code"),
			Output: payloads().Draw(t, "output"), Error: failure.Draw(t, "error"),
		}
	})).Draw(t, "close")
	e.Bound = optional(rapid.Custom(func(t *rapid.T) journal.Bound {
		head := journal.Head{Seq: int64(counts().Draw(t, "seq")), Hash: digests().Draw(t, "hash")}
		return journal.Bound{Chain: guids().Draw(t, "chain"), Head: head}
	})).Draw(t, "bound")
	e.Flow = optional(rapid.Custom(func(t *rapid.T) journal.FlowRef {
		return journal.FlowRef{Name: texts().Draw(t, "name"), Version: texts().Draw(t, "version"), Digest: digests().Draw(t, "digest")}
	})).Draw(t, "flow")
	e.Effect = optional(rapid.Custom(func(t *rapid.T) journal.Effect {
		return journal.Effect{
			Key: digests().Draw(t, "key"), Name: texts().Draw(t, "name"), Class: texts().Draw(t, "class"),
			N: counts().Draw(t, "n"), Turn: counts().Draw(t, "turn"), Fence: rapid.Int64().Draw(t, "fence"),
			Result: payloads().Draw(t, "result"), Error: failure.Draw(t, "error"), Late: rapid.Bool().Draw(t, "late"),
			Position: texts().Draw(t, "position"), Taken: optional(takens()).Draw(t, "taken"),
		}
	})).Draw(t, "effect")
	e.From, e.Next = optional(froms()).Draw(t, "from"), journal.JobID(guids().Draw(t, "next"))
	e.Operator = optional(rapid.Custom(func(t *rapid.T) journal.Operator {
		return journal.Operator{Action: texts().Draw(t, "action"), Who: texts().Draw(t, "who"), Reason: texts().Draw(t, "reason"), Login: texts().Draw(t, "login")}
	})).Draw(t, "operator")
	e.Trouble = optional(rapid.Custom(func(t *rapid.T) journal.Trouble {
		return journal.Trouble{Reason: texts().Draw(t, "reason"), Message: texts().Draw(t, "message")}
	})).Draw(t, "trouble")
}

func responses() *rapid.Generator[journal.Response] {
	return rapid.Custom(func(t *rapid.T) journal.Response {
		return journal.Response{
			Kind: journal.ResponseKind(texts().Draw(t, "kind")), Code: counts().Draw(t, "code"),
			Request: guids().Draw(t, "request"), Turn: counts().Draw(t, "turn"), Attempt: counts().Draw(t, "try"),
			Output: payloads().Draw(t, "output"), Ref: digests().Draw(t, "ref"),
			Error: optional(failures()).Draw(t, "error"), RetryAfter: rapid.Int64().Draw(t, "retry after"),
			By: journal.By(texts().Draw(t, "by")), Signal: guids().Draw(t, "signal"), Number: counts().Draw(t, "number"), Who: texts().Draw(t, "who"),
			Child: journal.JobID(guids().Draw(t, "child")), Element: counts().Draw(t, "element"),
			Pauses: lists(t, "pauses", pauses()), Of: optional(pauseRefs()).Draw(t, "of"), Undone: rapid.Bool().Draw(t, "undone"),
			Began: rapid.Int64Range(0, 1<<53-1).Draw(t, "began"), Ran: rapid.Int64Range(0, 1<<53-1).Draw(t, "ran"),
			Taken: optional(takens()).Draw(t, "taken"),
		}
	})
}

func takens() *rapid.Generator[journal.Taken] {
	return rapid.Custom(func(t *rapid.T) journal.Taken {
		return journal.Taken{Generation: int64(counts().Draw(t, "generation")), Chain: guids().Draw(t, "chain"), Seq: int64(counts().Draw(t, "seq")), Forked: rapid.Bool().Draw(t, "forked")}
	})
}

func froms() *rapid.Generator[journal.From] {
	return rapid.Custom(func(t *rapid.T) journal.From {
		return journal.From{
			Job: journal.JobID(guids().Draw(t, "job")), Generation: int64(counts().Draw(t, "generation")),
			Head: journal.Head{Seq: int64(counts().Draw(t, "seq")), Hash: digests().Draw(t, "hash")},
			Root: journal.JobID(guids().Draw(t, "root")), RootGeneration: int64(counts().Draw(t, "root generation")),
			Activity: texts().Draw(t, "activity"), DAD: texts().Draw(t, "dad"),
			Children: lists(t, "children", rapid.Custom(func(t *rapid.T) journal.FromChild {
				return journal.FromChild{
					Activity: texts().Draw(t, "activity"), DAD: texts().Draw(t, "dad"), Element: counts().Draw(t, "element"),
					Of: optional(pauseRefs()).Draw(t, "of"), Job: journal.JobID(guids().Draw(t, "job")),
				}
			})),
			Who: texts().Draw(t, "who"), Reason: texts().Draw(t, "reason"), Fork: optional(forks()).Draw(t, "fork"),
		}
	})
}

func forks() *rapid.Generator[journal.Fork] {
	return rapid.Custom(func(t *rapid.T) journal.Fork {
		return journal.Fork{
			Job: journal.JobID(guids().Draw(t, "job")), Generation: int64(counts().Draw(t, "generation")), At: int64(counts().Draw(t, "at")),
		}
	})
}

func pauses() *rapid.Generator[journal.Pause] {
	return rapid.Custom(func(t *rapid.T) journal.Pause {
		return journal.Pause{
			PauseRef: pauseRefs().Draw(t, "ref"), For: rapid.Int64().Draw(t, "for"), Topic: texts().Draw(t, "topic"),
			Key: texts().Draw(t, "key"), Flow: texts().Draw(t, "flow"), Version: texts().Draw(t, "version"),
			Input: payloads().Draw(t, "input"),
		}
	})
}

func pauseRefs() *rapid.Generator[journal.PauseRef] {
	return rapid.Custom(func(t *rapid.T) journal.PauseRef {
		return journal.PauseRef{
			Kind: journal.PauseKind(texts().Draw(t, "kind")), Name: texts().Draw(t, "name"),
			Position: texts().Draw(t, "position"),
		}
	})
}
