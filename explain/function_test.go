package explain_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/explain"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// asleep adds the request of a function that suspended in turn 3.
func (w *world) asleep(pauses ...collation.Pause) *collation.Row {
	r := w.request("charge", "pay.charge", 1)
	r.Turn, r.TurnSent, r.NextAt = 4, 3, collation.Never
	for i := range pauses {
		p := &pauses[i]
		if p.Position == "" {
			p.Position = fmt.Sprint(i + 1)
		}
		p.GUID = collation.PauseGUID(r.GUID, p.PauseRef)
	}
	r.Pauses = pauses
	return r
}

func sleep(name string) collation.Pause {
	return collation.Pause{PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: name}}
}

func signal(name string, bounded bool) collation.Pause {
	return collation.Pause{PauseRef: journal.PauseRef{Kind: journal.PauseSignal, Name: name}, Timeout: bounded}
}

func childOf(name string) collation.Pause {
	return collation.Pause{PauseRef: journal.PauseRef{Kind: journal.PauseChild, Name: name}}
}

// alarm adds the timer of a pause, or the timeout of its wait.
func (w *world) alarm(request journal.GUID, p collation.Pause, at collation.Micros) *collation.Row {
	r := w.timer(journal.MessageWakeUp, "charge", at)
	r.GUID = p.GUID
	if p.Kind == journal.PauseSignal {
		r.GUID = collation.TimeoutGUID(p.GUID)
	}
	r.Body = journal.EncodeResponse(&journal.Response{Kind: journal.ResponseWake, Code: 200, By: journal.ByTimer, Request: request})
	return r
}

// waitsFor adds the wait of a pause.
func (w *world) waitsFor(request journal.GUID, p collation.Pause, topic, key string) {
	x := w.wait("charge", topic)
	x.GUID, x.Key, x.Request = p.GUID, key, request
}

// ordered adds the start of the child of a pause.
func (w *world) ordered(p collation.Pause) {
	r := w.row(journal.MessageStart, "")
	r.GUID, r.Job, r.Sender = p.GUID, journal.JobID(p.GUID), self
	r.Body, _ = json.Marshal(collation.StartOrder{Flow: "invoice", Key: "order-42/inv"})
}

// woken adds the wake-up by a signal, or the outcome of a child.
func (w *world) woken(request journal.GUID, p collation.Pause) *collation.Row {
	r := w.row(journal.MessageWakeUp, "charge")
	r.GUID = p.GUID
	x := &journal.Response{Kind: journal.ResponseWake, Code: 200, By: journal.BySignal, Signal: journal.GUID{7}, Request: request}
	if p.Kind == journal.PauseChild {
		r.Kind, r.GUID = journal.MessageOutcome, collation.OutcomeGUID(p.GUID, 0)
		x = &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Child: journal.JobID(p.GUID), Request: request}
	}
	r.Body = journal.EncodeResponse(x)
	return r
}

var sleepingStates = map[string]state{
	"a signal with a bound, and a timer": {
		make: func(w *world) {
			r := w.asleep(signal("order.reviewed", true), sleep("cool-off"))
			w.waitsFor(r.GUID, r.Pauses[0], "order.reviewed", "order-42")
			request, pauses := r.GUID, r.Pauses
			w.alarm(request, pauses[0], now+72*hour)
			w.alarm(request, pauses[1], now+2*hour)
		}, kind: explain.KindSuspended, due: now + 2*hour, do: []string{"quipu signal order.reviewed order-42"},
		text: `charge (function) is suspended in turn 3: it waits for signal order.reviewed with key "order-42", at most until 2026-11-24 12:00:00 UTC, ` +
			`and timer "cool-off", due in 2 h, at 2026-11-21 14:00:00 UTC`,
	},
	"a signal under another name": {
		make: func(w *world) {
			r := w.asleep(signal("first", false))
			w.waitsFor(r.GUID, r.Pauses[0], "order.reviewed", "order-42")
		}, kind: explain.KindSuspended, do: []string{"quipu signal order.reviewed order-42"},
		text: `charge (function) is suspended in turn 3: it waits for signal order.reviewed with key "order-42" ("first")`,
	},
	"a child that has not begun": {
		make: func(w *world) {
			r := w.asleep(childOf("inv"))
			w.ordered(r.Pauses[0])
		}, kind: explain.KindSuspended,
		text: `charge (function) is suspended in turn 3: it waits for child "inv" (job "order-42/inv" of flow invoice), which has not begun`,
	},
	"a child, not looked up": {
		make: func(w *world) { w.asleep(childOf("inv")) }, kind: explain.KindSuspended,
		text: `charge (function) is suspended in turn 3: it waits for child "inv" (job ` + namedChild("inv").String() + `)`,
	},
	"a child that is gone": {
		make: func(w *world) {
			w.asleep(childOf("inv"))
			w.job.Find = func(journal.JobID) *store.JobSummary { return nil }
		}, kind: explain.KindSuspended,
		text: `charge (function) is suspended in turn 3: it waits for child "inv" (job ` + namedChild("inv").String() + `), which is not known here`,
	},
	"a child that is open, and a bound": {
		make: func(w *world) {
			w.asleep(childOf("inv")).WithinAt = now + 30*second
			w.job.Find = func(journal.JobID) *store.JobSummary {
				return &store.JobSummary{Job: collation.Job{Key: "order-42/inv", State: journal.JobOpen}}
			}
		}, kind: explain.KindSuspended,
		text: `charge (function) is suspended in turn 3: it waits for child "inv" (job "order-42/inv"), which is open; without an end it gets error 408 in 30 s`,
	},
	"what came between": {
		make: func(w *world) {
			came, taken := sleep("nap"), sleep("rest")
			came.Taken, came.Came, taken.Taken = true, true, true
			w.asleep(came, taken, sleep("lost"))
		}, kind: explain.KindSuspended,
		text: `charge (function) is suspended in turn 3: it waits for sleep "nap", which has come, sleep "rest", which is being handled, ` +
			`and sleep "lost", of which nothing stands`,
	},
	"many things": {
		make: func(w *world) {
			var all []collation.Pause
			for i := range 11 {
				all = append(all, sleep(fmt.Sprintf("s%d", i)))
			}
			r := w.asleep(all...)
			request, pauses := r.GUID, r.Pauses
			for i := range pauses {
				w.alarm(request, pauses[i], now+collation.Micros(12-i)*second)
			}
		}, kind: explain.KindSuspended, due: now + 2*second,
		text: `charge (function) is suspended in turn 3: it waits for timer "s0", due in 12 s, timer "s1", due in 11 s, timer "s2", due in 10 s, ` +
			`timer "s3", due in 9 s, timer "s4", due in 8 s, timer "s5", due in 7 s, timer "s6", due in 6 s, timer "s7", due in 5 s, and 3 more`,
	},
	"a compensation that failed": {
		make: func(w *world) {
			r := w.asleep(collation.Pause{PauseRef: journal.UndoPause("refund", 6)})
			w.alarm(r.GUID, r.Pauses[0], now+32*second)
		}, kind: explain.KindSuspended, due: now + 32*second,
		text: `charge (function) undoes what it did, turn 3: compensation "refund" has failed 6 times and runs again in 32 s; the log of its worker says why`,
	},
	"leased again": {
		make: func(w *world) {
			r := w.asleep(sleep("nap"))
			r.Holder, r.NextAt, r.TurnSent, r.Attempt = "host-1", collation.Never, 4, 2
		}, kind: explain.KindLease,
		text: "charge (function) is with host-1, turn 4, attempt 2 of 5; it is free as soon as that process is not heard of",
	},
	"sent out again": {
		make: func(w *world) {
			r := w.asleep(sleep("nap"))
			r.NextAt, r.TurnSent = now+second, 4
		}, kind: explain.KindWorker,
		text: "charge (function) was sent to pay.charge 4 s ago, turn 4, attempt 1 of 5; it waits for the response, and is looked for again in 1 s",
	},
	"elements": {
		make: func(w *world) {
			r := w.request("items", "stock.reserve", 1)
			r.Turn, r.NextAt, r.Pauses = 2, collation.Never, []collation.Pause{sleep("nap")}
			i := &w.Instances[len(w.Instances)-1].Instance
			i.Leg1, i.Open, i.Count = leg1, 1, 3
		}, kind: explain.KindEach,
		text: "items: 2 of 3 elements have ended; 1 suspended",
	},
}

func namedChild(name string) journal.JobID {
	return collation.NamedChild(collation.RequestGUID(leg1, 0), journal.PauseRef{Kind: journal.PauseChild, Name: name, Position: "1"})
}

// 5.3: a sentence names what a function waits for.
func TestWhySaysWhatAFunctionWaitsFor(t *testing.T) {
	t.Parallel()
	for name, s := range sleepingStates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireState(t, s)
		})
	}
}

func requireState(t *testing.T, s state) {
	t.Helper()
	w := newWorld(t, everything)
	s.make(w)
	reasons := explain.Why(&w.job)
	require.Len(t, reasons, 1)
	require.Equal(t, s.text, reasons[0].Text)
	require.Equal(t, s.kind, reasons[0].Kind)
	require.Equal(t, s.due, reasons[0].Due)
	require.Equal(t, s.do, append([]string(nil), reasons[0].Commands...))
}

// Wakes under way have a sentence of their own, before that of the function.
func TestWhySaysThatAFunctionIsWoken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(w *world)
		kind explain.Kind
		text string
	}{
		"a timer that went off": {func(w *world) {
			r := w.asleep(sleep("nap"))
			w.alarm(r.GUID, r.Pauses[0], now-second)
		}, explain.KindUnsent, `charge (function) was woken by its timer "nap"; the message was not published yet, an engine does that`},
		"a bound that has passed": {func(w *world) {
			r := w.asleep(signal("ok", true))
			request, p := r.GUID, r.Pauses[0]
			w.waitsFor(request, p, "order.ok", "k")
			w.alarm(request, p, now-second)
		}, explain.KindUnsent, `charge (function) waited in vain for its signal "ok"; the message was not published yet, an engine does that`},
		"a signal": {func(w *world) {
			r := w.asleep(signal("ok", false))
			w.woken(r.GUID, r.Pauses[0])
		}, explain.KindEngine, `charge (function) was woken by its signal "ok"; the message went to the engines 4 s ago and is looked for again in 1 s`},
		"an outcome": {func(w *world) {
			r := w.asleep(childOf("inv"))
			w.woken(r.GUID, r.Pauses[0])
		}, explain.KindEngine, `charge (function) has the outcome of its child "inv"; the message went to the engines 4 s ago and is looked for again in 1 s`},
		"what it waits for no more": {func(w *world) {
			r := w.asleep(signal("ok", false))
			request, p := r.GUID, r.Pauses[0]
			r.Pauses = []collation.Pause{sleep("nap")}
			w.woken(request, p)
		}, explain.KindEngine, "charge (function) has a wake that it does not wait for any more; the message went to the engines 4 s ago and is looked for again in 1 s"},
		"a stuck one": {func(w *world) {
			r := w.asleep(signal("ok", false))
			w.letter(w.woken(r.GUID, r.Pauses[0]), "stuck", "refused by the database")
		}, explain.KindPerson, "charge waits for a person since 2 min: dead letter 7 (stuck): refused by the database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, everything)
			c.make(w)
			reasons := explain.Why(&w.job)
			require.Len(t, reasons, 2)
			require.Equal(t, c.text, reasons[0].Text)
			require.Equal(t, c.kind, reasons[0].Kind)
			require.Equal(t, explain.KindSuspended, reasons[1].Kind)
		})
	}
	w := newWorld(t, everything)
	w.woken(journal.GUID{9}, sleep("nap"))
	require.Contains(t, explain.Why(&w.job)[0].Text, "charge (function) has a wake for a request that has ended")
}

// E10, E15: a parked function is explained, with what a person can do.
func TestWhySaysWhyAFunctionIsParked(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{
		"nondeterminism": `call 3 is sleep "nap", recorded is effect "pay": deploy the code it began with, then retry`,
		"confirm":        `pay: the provider does not know it; if it was done, "quipu dead done"`,
		"undo":           `the compensation "refund" failed 10 times: connection refused`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, everything)
			r := w.asleep(sleep("nap"))
			request, p := r.GUID, r.Pauses[0]
			w.letter(r, "parked", message)
			w.alarm(request, p, now+hour)
			reasons := explain.Why(&w.job)
			require.Len(t, reasons, 1)
			require.Equal(t, "charge waits for a person since 2 min: dead letter 7 (parked): "+message, reasons[0].Text)
			require.Equal(t, explain.KindPerson, reasons[0].Kind)
			require.Equal(t, "quipu dead retry 7", reasons[0].Commands[0])
		})
	}
}

// 3.5: a job that runs compensations names its function, and a job whose close ordered
// compensations names their jobs.
func TestWhyNamesCompensations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything)
	w.Flow = journal.FlowRef{Name: flow.UndoName, Version: "pay.charge"}
	w.Parent = &journal.Parent{Job: other, Activity: "charge", DAD: ",0,0"}
	w.request("charge", "pay.charge", 1)
	require.Equal(t, "charge (compensations of charge of job "+other.String()+") was sent to pay.charge 4 s ago, attempt 1 of 5; it waits for the response, and is looked for again in 1 s",
		explain.Why(&w.job)[0].Text)
	w.knows(journal.JobInterrupted)
	require.Contains(t, explain.Why(&w.job)[0].Text, `(compensations of charge of job "order-42/bill-1")`)

	ended := newWorld(t, everything)
	closed(journal.JobInterrupted, 410, "refused")(ended)
	ended.job.Last = &journal.Entry{Kind: journal.KindInterrupt, Abandoned: 1, Dispatched: []journal.Dispatched{
		{Kind: journal.MessageStart, Job: other, GUID: other.Start()},
		{Kind: journal.MessageInterrupt, Job: self},
	}}
	require.Equal(t, "the job was interrupted with code 410 after 40 s, by an interrupt that was sent to it: refused; 1 open obligation was abandoned; compensations are run by job "+other.String(),
		explain.Why(&ended.job)[0].Text)
	ended.knows(journal.JobOpen)
	require.Contains(t, explain.Why(&ended.job)[0].Text, `; compensations are run by job "order-42/bill-1", which is open`)
}

// 5.3: the graph shows suspended functions.
func TestGraphShowsSuspendedFunctions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything)
	w.asleep(sleep("nap"))
	standing := explain.Survey(&w.job)
	for _, st := range standing {
		if st.Activity.Name == "charge" {
			require.Equal(t, 1, st.Suspended)
			require.Equal(t, explain.StateWaiting, st.State)
		}
	}
	require.Contains(t, explain.Graph(&w.job, explain.Style{}), "waiting, suspended\n")

	stuck := newWorld(t, everything)
	r := stuck.asleep(signal("ok", false))
	stuck.letter(stuck.woken(r.GUID, r.Pauses[0]), "stuck", "refused by the database")
	require.Contains(t, explain.Graph(&stuck.job, explain.Style{}), "! charge")
}
