package replay_test

import (
	"slices"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// functionFeatures are the facts about durable functions and their effects.
var functionFeatures = map[string]func(e *journal.Entry) bool{
	"a suspension": func(e *journal.Entry) bool { return responds(e, journal.ResponseSuspended) },
	"a suspension cut": func(e *journal.Entry) bool {
		return responds(e, journal.ResponseSuspended) && !marked(e, journal.MarkChildren)
	},
	"an element that suspends": func(e *journal.Entry) bool { return responds(e, journal.ResponseSuspended) && e.Response.Element > 0 },
	"a suspension that takes back": func(e *journal.Entry) bool {
		return responds(e, journal.ResponseSuspended) && len(e.Cancelled) > 0
	},
	"a suspension that goes on at once": func(e *journal.Entry) bool {
		return responds(e, journal.ResponseSuspended) && len(e.Updated) == 1 && marked(e, journal.MarkChildren) && e.Updated[0].NextAt > 0
	},
	"a child of a function": func(e *journal.Entry) bool {
		return responds(e, journal.ResponseSuspended) && dispatches(e, journal.MessageStart)
	},
	"a wait of a function": func(e *journal.Entry) bool { return responds(e, journal.ResponseSuspended) && len(e.Waits) > 0 },
	"a sleep that ends":    func(e *journal.Entry) bool { return wakes(e, journal.PauseSleep) },
	"a bound that ends a wait": func(e *journal.Entry) bool {
		return wakes(e, journal.PauseSignal) && e.Response.By == journal.ByTimer && len(e.Cancelled) > 0
	},
	"a signal for a function": func(e *journal.Entry) bool {
		return wakes(e, journal.PauseSignal) && e.Response.By == journal.BySignal
	},
	"a signal that ends a bound": func(e *journal.Entry) bool {
		return wakes(e, journal.PauseSignal) && e.Response.By == journal.BySignal && len(e.Cancelled) > 0
	},
	"a signal for a function with an error": func(e *journal.Entry) bool { return wakes(e, journal.PauseSignal) && e.Response.Code == 409 },
	"a child that ends":                     func(e *journal.Entry) bool { return wakes(e, journal.PauseChild) && e.Response.Code == 200 },
	"a child that fails":                    func(e *journal.Entry) bool { return wakes(e, journal.PauseChild) && e.Response.Code != 200 },
	"a wake that sends out":                 func(e *journal.Entry) bool { return responds(e, journal.ResponseWake) && len(e.Updated) > 0 },
	"a wake that leaves its mark only": func(e *journal.Entry) bool {
		return responds(e, journal.ResponseWake) && marked(e, journal.MarkChildren) && len(e.Updated) == 0
	},
	"an end that takes back": func(e *journal.Entry) bool {
		return responds(e, journal.ResponseTerminal) && len(e.Cancelled) > 0 && !e.Response.Request.IsZero()
	},
	"a child of a function, itself": func(e *journal.Entry) bool { return e.Parent != nil && e.Parent.Turn == 0 && e.Parent.Awaited },
	"a job for compensations": func(e *journal.Entry) bool {
		return e.Parent != nil && e.Parent.Turn == 0 && !e.Parent.Awaited && e.Flow.Name == flow.UndoName
	},
	"compensations ordered by an answer": func(e *journal.Entry) bool {
		return responds(e, journal.ResponseTerminal) && dispatches(e, journal.MessageStart) && !marked(e, journal.MarkClosed)
	},
	"compensations ordered by a close": func(e *journal.Entry) bool {
		return e.Kind == journal.KindInterrupt && dispatches(e, journal.MessageStart)
	},
	"compensations that ran": func(e *journal.Entry) bool { return e.Response != nil && e.Response.Undone },
	"a registered compensation": func(e *journal.Entry) bool {
		return e.Kind == journal.KindEffectStarted && e.Effect.Class == replay.ClassUndo
	},
	"a result taken back": func(e *journal.Entry) bool {
		return e.Kind == journal.KindEffectFailed && e.Effect.Error.Class == replay.ClassVoided
	},
	"an operator's word on an effect": func(e *journal.Entry) bool { return e.Kind == journal.KindOperator && e.Effect != nil },
	"a dead letter about a wake": func(e *journal.Entry) bool {
		return e.Kind == journal.KindDeadLetter && e.Updated[0].Kind == journal.MessageWakeUp && slices.Contains([]string{"work", "each"}, kindOf(e))
	},
}

// kindOf is the name of an activity of a mixed flow, without its number.
func kindOf(e *journal.Entry) string {
	end := len(e.Activity)
	for end > 0 && e.Activity[end-1] >= '0' && e.Activity[end-1] <= '9' {
		end--
	}
	return e.Activity[:end]
}

func responds(e *journal.Entry, k journal.ResponseKind) bool {
	return e.Response != nil && e.Response.Kind == k
}

func wakes(e *journal.Entry, k journal.PauseKind) bool {
	return responds(e, journal.ResponseWake) && e.Response.Of != nil && e.Response.Of.Kind == k
}
