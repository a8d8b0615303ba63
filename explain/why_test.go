package explain_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/explain"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// state is a job in one state, and its explanation.
type state struct {
	make func(*world)
	kind explain.Kind
	text string
	due  collation.Micros
	do   []string
}

var verify = []string{"journal-verify --job " + self.String()}

var workerStates = map[string]state{
	"sent to a worker": {
		make: func(w *world) { w.request("charge", "pay.charge", 2) }, kind: explain.KindWorker,
		text: "charge was sent to pay.charge 4 s ago, attempt 2 of 5; it waits for the response, and is looked for again in 1 s",
	},
	"sent long ago": {
		make: func(w *world) { w.request("charge", "pay.charge", 1).PublishedAt = now - 30*second }, kind: explain.KindWorker,
		text: "charge was sent to pay.charge 30 s ago, attempt 1 of 5; it waits for the response, and is looked for again in 1 s; if that is long for it, look whether a worker of pay.charge runs",
	},
	"sent, with a bound": {
		make: func(w *world) { w.request("charge", "pay.charge", 1).WithinAt = now + 30*second }, kind: explain.KindWorker,
		text: "charge was sent to pay.charge 4 s ago, attempt 1 of 5; it waits for the response, and is looked for again in 1 s; without an end it gets error 408 in 30 s",
	},
	"sent, without a flow": {
		make: func(w *world) { w.request("charge", "pay.charge", 2); w.job.Flow = nil }, kind: explain.KindWorker,
		text: "charge was sent to pay.charge 4 s ago, attempt 2; it waits for the response, and is looked for again in 1 s",
	},
	"leased": {
		make: func(w *world) {
			r := w.request("charge", "pay.charge", 1)
			r.Holder, r.NextAt = "host-1", collation.Never
		}, kind: explain.KindLease,
		text: "charge is with host-1, attempt 1 of 5; it is free as soon as that process is not heard of",
	},
	"a retry": {
		make: func(w *world) {
			r := w.request("charge", "pay.charge", 2)
			r.TurnSent, r.NextAt = 1, now+3*second
		}, kind: explain.KindRetry, due: now + 3*second,
		text: "charge failed and is tried again in 3 s, attempt 2 of 5",
	},
	"a retry that is due": {
		make: func(w *world) {
			r := w.request("charge", "pay.charge", 2)
			r.TurnSent, r.NextAt = 1, now-3*second
		}, kind: explain.KindUnsent, due: now - 3*second,
		text: "charge is due for pay.charge now, attempt 2 of 5; the message was not published yet, an engine does that",
	},
	"never published": {
		make: func(w *world) {
			r := w.request("charge", "pay.charge", 1)
			r.Publication, r.TurnSent, r.NextAt = 0, 0, now
		}, kind: explain.KindUnsent, due: now,
		text: "charge is due for pay.charge now, attempt 1 of 5; the message was not published yet, an engine does that",
	},
	"suspended": {
		make: func(w *world) {
			r := w.request("charge", "pay.charge", 2)
			r.TurnSent, r.NextAt = 1, collation.Never
		}, kind: explain.KindSuspended,
		text: "charge is suspended: its handler goes on when what it waits for comes",
	},
	"answered": {
		make: func(w *world) {
			r := w.request("charge", "pay.charge", 1)
			r.Kind, r.Body = journal.MessageAnswer, journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: 200})
		}, kind: explain.KindEngine, due: now + second,
		text: "charge has its answer; the message went to the engines 4 s ago and is looked for again in 1 s",
	},
	"parked": {
		make: func(w *world) {
			w.letter(w.request("charge", "pay.charge", 2), "parked", "the outcome of an effect is unknown")
		}, kind: explain.KindPerson,
		text: "charge waits for a person since 2 min: dead letter 7 (parked): the outcome of an effect is unknown",
		do:   []string{"quipu dead retry 7", "quipu dead resolve 7 --result JSON", "quipu dead fail 7", "quipu interrupt order-42"},
	},
	"parked for an effect": {
		make: func(w *world) {
			w.letter(w.request("charge", "pay.charge", 2), "parked", "look outside, then `quipu dead done` with its result")
		}, kind: explain.KindPerson,
		text: "charge waits for a person since 2 min: dead letter 7 (parked): look outside, then `quipu dead done` with its result",
		do: []string{
			"quipu dead retry 7", "quipu dead done 7 --result JSON", "quipu dead resolve 7 --result JSON", "quipu dead fail 7",
			"quipu interrupt order-42",
		},
	},
	"held without a dead letter": {
		make: func(w *world) { w.request("charge", "pay.charge", 2).Held = collation.HeldParked }, kind: explain.KindPerson,
		text: "charge is held (parked) and has no open dead letter",
		do:   append(verify[:1:1], "quipu interrupt order-42"),
	},
	"elements": {
		make: func(w *world) {
			w.request("items", "stock.reserve", 1).Element = 3
			i := &w.Instances[len(w.Instances)-1].Instance
			i.Leg1, i.Open, i.Count = leg1, 7, 10
			for _, change := range []func(r *collation.Row){
				func(r *collation.Row) { r.Holder, r.NextAt = "host-1", collation.Never },
				func(r *collation.Row) { r.Attempt, r.Turn, r.NextAt = 2, 2, now+9*second },
				func(r *collation.Row) { r.Attempt, r.Turn, r.NextAt = 2, 2, now+5*second },
				func(r *collation.Row) { r.Kind = journal.MessageAnswer },
				func(r *collation.Row) { r.Held, r.Publication, r.TurnSent = collation.HeldParallel, 0, 0 },
				func(r *collation.Row) { r.Publication, r.TurnSent = 0, 0 },
			} {
				r := w.row(journal.MessageRequest, "items")
				r.Topic, r.Turn, r.Attempt, r.TurnSent = "stock.reserve", 1, 1, 1
				change(r)
			}
		}, kind: explain.KindEach, due: now + 5*second,
		text: "items: 3 of 10 elements have ended; 1 sent to stock.reserve, the oldest 4 s ago, 1 with workers, " +
			"2 failed and tried again, the next in 5 s, 1 not published yet, 1 answered, 1 held, at most 2 are under way at once",
	},
	"elements sent long ago": {
		make: func(w *world) {
			w.request("items", "stock.reserve", 1).PublishedAt = now - minute
			i := &w.Instances[len(w.Instances)-1].Instance
			i.Leg1, i.Open, i.Count = leg1, 1, 3
		}, kind: explain.KindEach,
		text: "items: 2 of 3 elements have ended; 1 sent to stock.reserve, the oldest 1 min ago; if that is long for it, look whether a worker of stock.reserve runs",
	},
}

var otherStates = map[string]state{
	"begun": {
		make: func(w *world) { w.row(journal.MessageStart, "start").DAD = ",0" }, kind: explain.KindEngine, due: now + second,
		text: "the job has begun, and its first activities are not dispatched; the message went to the engines 4 s ago and is looked for again in 1 s",
	},
	"to be started": {
		make: func(w *world) {
			r := w.row(journal.MessageStart, "start")
			r.DAD, r.Publication, r.PublishedAt, r.NextAt = ",0", 0, collation.Never, now+hour
		}, kind: explain.KindTimer, due: now + hour,
		text: "the job starts in 1 h, at 2026-11-21 13:00:00 UTC",
	},
	"dispatched": {
		make: func(w *world) { w.row(journal.MessageLeg1, "charge") }, kind: explain.KindEngine, due: now + second,
		text: "charge is entered next; the message went to the engines 4 s ago and is looked for again in 1 s",
	},
	"dispatched, not published": {
		make: func(w *world) { w.row(journal.MessageLeg1, "charge").Publication = 0 }, kind: explain.KindUnsent, due: now + second,
		text: "charge is entered next; the message was not published yet, an engine does that",
	},
	"entered in vain": {
		make: func(w *world) {
			w.instance("charge", ",0,0", 4000000000000)
			w.row(journal.MessageLeg1, "charge")
		}, kind: explain.KindEngine, due: now + second,
		text: "charge was entered 4 times without completing its work, and is entered again; the message went to the engines 4 s ago and is looked for again in 1 s",
	},
	"stuck": {
		make: func(w *world) {
			w.instance("charge", ",0,0", 90000000000000)
			w.letter(w.row(journal.MessageLeg1, "charge"), "stuck", "it entered its Leg1 90 times")
		}, kind: explain.KindPerson,
		text: "charge waits for a person since 2 min: dead letter 7 (stuck): it entered its Leg1 90 times",
		do:   []string{"quipu dead retry 7", "quipu interrupt order-42"},
	},
	"a timer": {
		make: func(w *world) { w.waiting("nap"); w.timer(journal.MessageWakeUp, "nap", now+hour) }, kind: explain.KindTimer, due: now + hour,
		text: "nap sleeps and wakes in 1 h, at 2026-11-21 13:00:00 UTC",
	},
	"a timer that went off": {
		make: func(w *world) { w.waiting("nap"); w.timer(journal.MessageWakeUp, "nap", now-second) }, kind: explain.KindUnsent, due: now - second,
		text: "nap was woken by its timer; the message was not published yet, an engine does that",
	},
	"a stuck wake-up": {
		make: func(w *world) {
			w.waiting("nap")
			w.letter(w.timer(journal.MessageWakeUp, "nap", now+hour), "stuck", "refused by the database")
		}, kind: explain.KindPerson,
		text: "nap waits for a person since 2 min: dead letter 7 (stuck): refused by the database",
		do:   []string{"quipu dead retry 7", "quipu interrupt order-42"},
	},
	"a signal": {
		make: func(w *world) {
			w.waiting("asked")
			w.wait("asked", "order.asked")
			w.timer(journal.MessageAnswer, "asked", now+hour)
		}, kind: explain.KindSignal, do: []string{"quipu signal order.asked 'order 42'"},
		text: `asked waits for signal order.asked with key "order 42", since 2026-11-21 11:59:00 UTC; without an end it gets error 408 in 1 h, at 2026-11-21 13:00:00 UTC`,
	},
	"a bound that has passed": {
		make: func(w *world) {
			w.waiting("asked")
			w.wait("asked", "order.asked")
			r := w.timer(journal.MessageAnswer, "asked", now+second)
			r.Publication, r.PublishedAt = 1, now-second
		}, kind: explain.KindEngine, due: now + second,
		text: "asked was not ended within its time, and gets error 408; the message went to the engines 1 s ago and is looked for again in 1 s",
	},
	"a race": {
		make: func(w *world) {
			w.waiting("review")
			w.wait("review", "order.reviewed").Key = "k"
			w.timer(journal.MessageWakeUp, "review", now+72*hour)
		}, kind: explain.KindRace, due: now + 72*hour, do: []string{"quipu signal order.reviewed k"},
		text: `review waits for signal order.reviewed with key "k" or for its timer, which goes off in 3 d, at 2026-11-24 12:00:00 UTC`,
	},
	"a signal that came": {
		make: func(w *world) {
			w.waiting("review")
			w.row(journal.MessageWakeUp, "review").Body = journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: 200, By: journal.BySignal})
			w.timer(journal.MessageWakeUp, "review", now+72*hour)
		}, kind: explain.KindEngine, due: now + second,
		text: "review was woken by its signal; the message went to the engines 4 s ago and is looked for again in 1 s",
	},
	"a repeating hook": {
		make: func(w *world) {
			w.waiting("feed").Ledger += 3
			x := w.wait("feed", "feed.item")
			x.Repeat, x.Count = true, 3
		}, kind: explain.KindSignal, do: []string{"quipu signal feed.item 'order 42'"},
		text: `feed waits for signal feed.item with key "order 42", since 2026-11-21 11:59:00 UTC; 3 signals so far, one with code 200 ends it`,
	},
	"a child, not looked up": {
		make: func(w *world) { w.await("bill", 1) }, kind: explain.KindChild,
		text: "bill waits for job " + other.String() + ", attempt 1 of 3",
	},
	"a child": {
		make: func(w *world) { w.await("bill", 2); w.knows(journal.JobOpen) }, kind: explain.KindChild,
		text: `bill waits for job "order-42/bill-1", which is open, attempt 2 of 3`,
	},
	"a child that ended": {
		make: func(w *world) { w.await("bill", 1); w.knows(journal.JobFailed) }, kind: explain.KindChild,
		text: `bill waits for job "order-42/bill-1", which is failed; its outcome is on its way, attempt 1 of 3`,
	},
	"a child that is gone": {
		make: func(w *world) {
			w.await("bill", 1)
			w.job.Find = func(journal.JobID) *store.JobSummary { return nil }
		}, kind: explain.KindChild,
		text: "bill waits for job " + other.String() + ", which is not known here, attempt 1 of 3",
	},
	"a child that nobody awaits": {
		make: func(w *world) { w.await("fire", 1) }, kind: explain.KindChild,
		text: "fire waits for the beginning of job " + other.String(),
	},
	"a child that starts": {
		make: func(w *world) { w.await("bill", 1); w.order() }, kind: explain.KindChild, due: now + second,
		text: `bill starts job "order-42/bill-1" of flow invoice, attempt 1 of 3; the message went to the engines 4 s ago and is looked for again in 1 s`,
	},
	"a child that is not published": {
		make: func(w *world) {
			w.await("bill", 1)
			r := w.order()
			r.Publication, r.NextAt = 0, now
		}, kind: explain.KindUnsent, due: now,
		text: `bill starts job "order-42/bill-1" of flow invoice, attempt 1 of 3; the message was not published yet, an engine does that`,
	},
	"the next child": {
		make: func(w *world) {
			w.await("bill", 2)
			r := w.order()
			r.Publication, r.NextAt = 0, now+3*second
		}, kind: explain.KindRetry, due: now + 3*second,
		text: `bill: its child failed; the next, job "order-42/bill-1" of flow invoice, is started in 3 s, attempt 2 of 3`,
	},
	"an outcome": {
		make: func(w *world) { w.await("bill", 1); w.row(journal.MessageOutcome, "bill") }, kind: explain.KindEngine, due: now + second,
		text: "bill has the outcome of its child; the message went to the engines 4 s ago and is looked for again in 1 s",
	},
	"a cycle": {
		make: func(w *world) {
			w.instance("pivot", ",0,0", 1100000000001)
			w.row(journal.MessageCycle, "pivot").Topic = "again"
		}, kind: explain.KindEngine, due: now + second,
		text: "pivot is sent into its next pass by again; the message went to the engines 4 s ago and is looked for again in 1 s",
	},
	"an interrupt": {
		make: func(w *world) {
			body, _ := json.Marshal(collation.InterruptOrder{Code: 410, Reason: "refunded", From: "a client"})
			w.row(journal.MessageInterrupt, "").Body = body
		}, kind: explain.KindInterrupt, due: now + second,
		text: "the job is interrupted next, by a client with code 410 (refunded); the message went to the engines 4 s ago and is looked for again in 1 s",
	},
	"a dead letter without a row": {
		make: func(w *world) { w.letter(nil, "undecodable", "no JSON") }, kind: explain.KindPerson,
		text: "the job waits for a person since 2 min: dead letter 7 (undecodable): no JSON",
		do:   []string{"quipu dead resolve 7 --result JSON", "quipu dead fail 7"},
	},
	"nothing": {
		make: func(*world) {}, kind: explain.KindUnknown, do: verify,
		text: "the job is open and no row says what it waits for: compare its tables with its journal",
	},
}

func (w *world) await(name string, attempt int) {
	i := w.waiting(name)
	i.Turn, i.Attempt, i.Child = attempt, attempt, other
}

// order adds the start of the child.
func (w *world) order() *collation.Row {
	r := w.row(journal.MessageStart, "")
	r.Job, r.Sender = other, self
	r.Body, _ = json.Marshal(collation.StartOrder{Flow: "invoice", Key: "order-42/bill-1"})
	return r
}

func (w *world) knows(s journal.JobState) {
	w.job.Find = func(id journal.JobID) *store.JobSummary {
		if id != other {
			return nil
		}
		return &store.JobSummary{Job: collation.Job{ID: id, Key: "order-42/bill-1", State: s}}
	}
}

// 5.3: every state of an open job has a sentence.
func TestWhySaysWhatAnOpenJobWaitsFor(t *testing.T) {
	t.Parallel()
	for _, states := range []map[string]state{workerStates, otherStates} {
		for name, s := range states {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, everything)
				s.make(w)
				reasons := explain.Why(&w.job)
				require.Len(t, reasons, 1)
				r := reasons[0]
				require.Equal(t, s.text, r.Text)
				require.Equal(t, s.kind, r.Kind)
				require.Equal(t, s.do, r.Commands)
				require.Equal(t, s.due, r.Due)
			})
		}
	}
}

// Reasons that need a person come first, whatever the order of the graph.
func TestWhyPutsAPersonFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything)
	w.waiting("nap")
	w.timer(journal.MessageWakeUp, "nap", now+hour)
	w.request("charge", "pay.charge", 1)
	w.letter(w.request("items", "stock.reserve", 2), "parked", "who knows")
	var kinds []explain.Kind
	for _, r := range explain.Why(&w.job) {
		kinds = append(kinds, r.Kind)
	}
	require.Equal(t, []explain.Kind{explain.KindPerson, explain.KindWorker, explain.KindTimer}, kinds)
}

// 1.11: a repeating hook still waits while one of its passes is under way.
func TestWhyOfAPassThatIsUnderWay_C6(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything)
	w.waiting("feed").Ledger++
	x := w.wait("feed", "feed.item")
	x.Repeat, x.Count = true, 2
	w.row(journal.MessageWakeUp, "feed").Body = journal.EncodeResponse(&journal.Response{Kind: journal.ResponsePass, Code: 200, By: journal.BySignal})
	reasons := explain.Why(&w.job)
	require.Len(t, reasons, 2)
	require.Equal(t, explain.KindEngine, reasons[0].Kind)
	require.Contains(t, reasons[1].Text, "2 signals so far")
}

// E10: under `each` every dead letter has its own sentence.
func TestWhyNamesEachDeadElement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything)
	first := w.request("items", "stock.reserve", 1)
	i := &w.Instances[len(w.Instances)-1].Instance
	i.Leg1, i.Open, i.Count = leg1, 2, 2
	w.letter(first, "parked", "a")
	second := w.row(journal.MessageRequest, "items")
	second.Element, second.Turn = 1, 1
	w.letter(second, "parked", "b")
	reasons := explain.Why(&w.job)
	require.Len(t, reasons, 3)
	require.Equal(t, []int64{7, 8}, []int64{reasons[0].Dead, reasons[1].Dead})
	require.Equal(t, "items: 0 of 2 elements have ended; 2 for a person", reasons[2].Text)
}

// What no living process serves is named: an engine first, each topic once.
func TestWhySaysWhatNobodyDoes(t *testing.T) {
	t.Parallel()
	charges := store.ProcessView{Process: store.Process{Name: "w1", Topics: []string{"pay.charge"}}}
	engine := store.ProcessView{Process: store.Process{Name: "e1", Engine: true}}
	const noEngine = "no engine is alive: the job does not go on before a process with the role engine runs"
	const noHandler = "items needs a handler of stock.reserve, and no process that is alive has one (a worker in another language is not seen here)"
	for name, c := range map[string]struct {
		processes []store.ProcessView
		want      []string
	}{
		"not looked up":        {nil, nil},
		"none":                 {[]store.ProcessView{}, []string{noEngine, "charge needs a handler of pay.charge, and no process that is alive has one (a worker in another language is not seen here)", noHandler}},
		"a worker":             {[]store.ProcessView{charges}, []string{noEngine, noHandler}},
		"and an engine":        {[]store.ProcessView{charges, engine}, []string{noHandler}},
		"an engine that works": {[]store.ProcessView{{Process: store.Process{Engine: true, Topics: []string{"pay.charge", "stock.reserve"}}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, everything)
			w.job.Processes = c.processes
			w.request("charge", "pay.charge", 1)
			w.request("items", "stock.reserve", 1)
			w.row(journal.MessageRequest, "items").Topic = "stock.reserve"
			held := w.request("merge", "pay.merge", 1) // with a process, as far as its row says
			held.Holder, held.NextAt = "w9", collation.Never
			var said []string
			for _, r := range explain.Why(&w.job) {
				if r.Kind == explain.KindNobody {
					said = append(said, r.Text)
					require.Equal(t, []string{"quipu processes"}, r.Commands)
				}
			}
			require.Equal(t, c.want, said)
		})
	}
}

// A job that has ended needs no process.
func TestWhyMissesNobodyOfAnEndedJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything)
	w.State, w.job.Processes = journal.JobCompleted, []store.ProcessView{}
	for _, r := range explain.Why(&w.job) {
		require.NotEqual(t, explain.KindNobody, r.Kind)
	}
}
