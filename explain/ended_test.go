package explain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/explain"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// closed is a job that ended, with its last entry.
func closed(s journal.JobState, code int, message string) func(*world) {
	return func(w *world) {
		w.State, w.Code, w.Closed, w.Ended, w.Semaphore = s, code, now-20*second, true, 0
		if message != "" {
			w.Error = &journal.Failure{Class: "error", Message: message}
		}
		w.job.Last = &journal.Entry{Kind: journal.KindLeg2, Activity: "charge", DAD: ",0,0"}
	}
}

// failedChild makes it an await that failed, with a child of the state; "": none is known.
func failedChild(s journal.JobState, key string) func(*world) {
	return func(w *world) {
		w.job.Last.Activity = "bill"
		w.job.Last.Response = &journal.Response{Kind: journal.ResponseFailedAttempt, Child: other, Attempt: 1, Code: 402}
		w.job.Find = func(id journal.JobID) *store.JobSummary {
			if id != other || s == "" {
				return nil
			}
			c := &store.JobSummary{}
			c.ID, c.Space, c.Key, c.Generation, c.State = id, "shop", key, 1, s
			return c
		}
	}
}

// answered makes its last entry a response of the attempt.
func answered(attempt, code int, message, stack string) func(*world) {
	return func(w *world) {
		w.job.Last.Response = &journal.Response{Kind: journal.ResponseTerminal, Attempt: attempt, Code: code}
		if message != "" {
			w.job.Last.Response.Error = &journal.Failure{Class: "error", Message: message, Stack: stack}
		}
	}
}

// late makes the error one of a class, and gives charge a limit.
func late(class, limit string) func(*world) {
	return func(w *world) {
		w.Error.Class = class
		w.job.Flow, _ = flow.Parse("f.yaml", []byte(strings.Replace(everything, "pay.charge,", "pay.charge, "+limit+",", 1)))
	}
}

// output fails the output of the flow.
func output(expression, why string) func(*world) {
	return func(w *world) {
		closed(journal.JobFailed, 500, "output: ${ "+expression+" }: "+why)(w)
		w.Error.Class = collation.ReasonExpression
		w.job.Last.Activity, w.Flow.Version = "merge", "3"
		w.instance("charge", ",0,0", 201100000000001)
		w.instance("items", ",0,0", 201100000000001)
		w.instance("bill", ",0,0", 201100000000001)
	}
}

var ended = map[string]struct {
	make []func(*world)
	kind []explain.Kind
	text string
	do   []string // of the last reason; nil: not looked at
}{
	"completed": {
		[]func(*world){closed(journal.JobCompleted, 200, ""), func(w *world) { w.Output = []byte(`{"id":7}`) }},
		[]explain.Kind{explain.KindClosed},
		`the job completed with code 200 after 40 s, by charge; its output is {"id":7}`, nil,
	},
	"failed": {
		[]func(*world){closed(journal.JobFailed, 402, "no money"), func(w *world) { w.job.Last.Abandoned = 2 }},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 402 after 40 s, by charge: no money; no transition of all takes this error (on: error); 2 open obligations were abandoned; mend what failed first", nil,
	},
	"by its child": {
		[]func(*world){closed(journal.JobFailed, 402, "no money"), failedChild(journal.JobFailed, "order-42/bill-1")},
		[]explain.Kind{explain.KindClosed},
		`the job failed with code 402 after 40 s, by bill, whose child (job "order-42/bill-1") failed: no money; no transition of all takes this error (on: error); mend what failed first`,
		[]string{"quipu why order-42/bill-1", "quipu resume order-42/bill-1", "quipu resume order-42"},
	},
	"by its child, which is gone": {
		[]func(*world){closed(journal.JobFailed, 402, "no money"), failedChild("", "")},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 402 after 40 s, by bill, whose child (job " + other.String() + ") failed: no money; no transition of all takes this error (on: error); mend what failed first",
		[]string{"quipu resume order-42"},
	},
	"by its child, which nobody looked up": {
		[]func(*world){closed(journal.JobFailed, 402, "no money"), failedChild("", ""), func(w *world) { w.job.Find = nil }},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 402 after 40 s, by bill, whose child (job " + other.String() + ") failed: no money; no transition of all takes this error (on: error); mend what failed first",
		[]string{"quipu why " + other.String(), "quipu resume " + other.String(), "quipu resume order-42"},
	},
	"by its child, which was interrupted": {
		[]func(*world){closed(journal.JobFailed, 410, "stop"), failedChild(journal.JobInterrupted, "bills")},
		[]explain.Kind{explain.KindClosed},
		`the job failed with code 410 after 40 s, by bill, whose child (job "bills") was interrupted: stop; no transition of all takes this error (on: error); mend what failed first`,
		[]string{"quipu why bills", "quipu resume bills", "quipu resume order-42"},
	},
	"by its child, which was resumed and completed": {
		[]func(*world){closed(journal.JobFailed, 402, "no money"), failedChild(journal.JobFailed, "a b"), func(w *world) {
			find := w.job.Find
			w.job.Find = func(id journal.JobID) *store.JobSummary {
				if id == collation.NewJobID("shop", "a b", 2) {
					c := *find(other)
					c.ID, c.State, c.Generation = id, journal.JobCompleted, 2
					return &c
				}
				return find(id)
			}
		}},
		[]explain.Kind{explain.KindClosed},
		`the job failed with code 402 after 40 s, by bill, whose child (job "a b") failed and was resumed, and is completed now: no money; no transition of all takes this error (on: error)`,
		[]string{"quipu resume order-42"},
	},
	"with a child that is still open": {
		[]func(*world){closed(journal.JobFailed, 402, "no money"), failedChild(journal.JobOpen, "bills"), func(w *world) {
			w.job.Last.Response, w.job.Last.Activity = nil, "charge"
			i := w.instance("bill", ",0,0", 1100000000000)
			i.Child = other
		}},
		[]explain.Kind{explain.KindClosed},
		`the job failed with code 402 after 40 s, by charge: no money; no transition of all takes this error (on: error); mend what failed first`,
		[]string{"quipu why bills", "quipu resume order-42"},
	},
	"by a business error": {
		[]func(*world){closed(journal.JobFailed, 402, "no money"), answered(1, 402, "no money", "")},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 402 after 40 s, by charge: no money; no transition of all takes this error (on: error); mend what failed first",
		[]string{"quipu resume order-42"},
	},
	"by a transition": {
		[]func(*world){closed(journal.JobFailed, 500, "no such key: id"), answered(1, 200, "", ""), func(w *world) {
			w.job.Last.Trouble = &journal.Trouble{Reason: collation.ReasonExpression, Message: "no such key: id"}
		}},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 500 after 40 s, by charge: no such key: id; mend what failed first",
		[]string{"quipu resume order-42"},
	},
	"after all attempts": {
		[]func(*world){closed(journal.JobFailed, 500, "refused\nat x\nat y"), answered(5, 500, "refused\nat x\nat y", "")},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 500 after 40 s, by charge after 5 attempts: refused… (quipu log order-42 --raw shows all); " +
			"no transition of all takes this error (on: error); mend what failed first",
		nil,
	},
	"by a panic": {
		[]func(*world){closed(journal.JobFailed, 500, "panic: no till"), answered(5, 500, "panic: no till", top+thrown+origin+below)},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 500 after 40 s, by charge after 5 attempts: panic: no till, at /app/my shop/charge.go:12 (quipu log order-42 --raw shows all); " +
			"no transition of all takes this error (on: error); mend what failed first",
		nil,
	},
	"after all children": {
		[]func(*world){closed(journal.JobFailed, 402, "no money"), failedChild("", ""), func(w *world) {
			w.job.Last.Response.Attempt = 0
			w.instance("bill", ",0,0", 201100000000001).Attempt = 3
		}},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 402 after 40 s, by bill after 3 attempts, whose child (job " + other.String() + ") failed: no money; no transition of all takes this error (on: error); mend what failed first",
		nil,
	},
	"with a long message": {
		[]func(*world){closed(journal.JobFailed, 500, strings.Repeat("ü", 150))},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 500 after 40 s, by charge: " + strings.Repeat("ü", 100) + "… (quipu log order-42 --raw shows all); no transition of all takes this error (on: error); mend what failed first",
		nil,
	},
	"by the output of its flow": {
		[]func(*world){output("charge.output.id", "no such key: id")},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 500 after 40 s: every activity has ended, and then the output of the flow failed: ${ charge.output.id }: no such key: id; " +
			"the job keeps version 3 of its flow, so it helps to do again what made the output (--from); a new version helps later jobs",
		[]string{"quipu resume order-42 --from charge"},
	},
	"by the output of its flow, which names several": {
		[]func(*world){output("charge.output.id + items.output.id + start.output.id + bill.output + work.output + mycharge.output", "no such key: id")},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 500 after 40 s: every activity has ended, and then the output of the flow failed: " +
			"${ charge.output.id + items.output.id + start.output.id + bill.output + work.output + mycharge.output }: no such key: id; " +
			"the job keeps version 3 of its flow, so it helps to do again what made the output (--from); a new version helps later jobs",
		[]string{"quipu resume order-42 --from charge", "quipu resume order-42 --from items"},
	},
	"by the output of its flow, which is not known": {
		[]func(*world){output("charge.output.id", "no such key: id"), func(w *world) { w.job.Flow = nil }},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 500 after 40 s: every activity has ended, and then the output of the flow failed: ${ charge.output.id }: no such key: id; " +
			"the job keeps version 3 of its flow, so it helps to do again what made the output (--from); a new version helps later jobs",
		[]string{},
	},
	"by the output of its flow, which names its input": {
		[]func(*world){output("start.output.id", "no such key: id")},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 500 after 40 s: every activity has ended, and then the output of the flow failed: ${ start.output.id }: no such key: id; " +
			"the job keeps version 3 of its flow, so no resume helps it; a new version helps later jobs",
		[]string{},
	},
	"by an expression that names a result": {
		[]func(*world){output("charge.output.id", "no such key: id"), func(w *world) {
			w.Error.Message = "when of the transition to stop of charge: ${ charge.output.id > 7 }: no such key: id"
			w.job.Last.Activity, w.job.Last.Trouble = "charge", &journal.Trouble{Reason: collation.ReasonExpression}
		}},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 500 after 40 s, by charge: when of the transition to stop of charge: ${ charge.output.id > 7 }: no such key: id; " +
			"the job keeps version 3 of its flow, so it helps to do again what made the output (--from); a new version helps later jobs",
		[]string{"quipu resume order-42 --from charge"},
	},
	"by an expression that names its input": {
		[]func(*world){output("start.output.id", ""), func(w *world) {
			w.Error.Message = "input of merge: ${ start.output.net / start.output.n }: division by zero"
		}},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 500 after 40 s, by merge: input of merge: ${ start.output.net / start.output.n }: division by zero; " +
			"no transition of all takes this error (on: error); the job keeps version 3 of its flow, so no resume helps it; a new version helps later jobs",
		[]string{},
	},
	"by its timeout": {
		[]func(*world){closed(journal.JobFailed, 408, "context deadline exceeded"), late("timeout", "timeout: 90s")},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 408 after 40 s, by charge: context deadline exceeded (an attempt of charge has 1 min 30 s: its timeout); " +
			"no transition of all takes this error (on: error); mend what failed first",
		[]string{"quipu resume order-42"},
	},
	"by its within": {
		[]func(*world){closed(journal.JobFailed, 408, "no answer"), late("within", "within: 2h")},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 408 after 40 s, by charge: no answer (charge has 2 h, its within; its topic is pay.charge); " +
			"no transition of all takes this error (on: error); mend what failed first",
		[]string{"quipu resume order-42"},
	},
	"interrupted by itself": {
		[]func(*world){closed(journal.JobInterrupted, 410, "refused"), func(w *world) { w.job.Last.Activity, w.job.Last.Kind = "stop", journal.KindLeg1 }},
		[]explain.Kind{explain.KindClosed},
		"the job was interrupted with code 410 after 40 s, by stop: refused", nil,
	},
	"interrupted from outside, to be removed": {
		[]func(*world){closed(journal.JobInterrupted, 410, "refused"), func(w *world) {
			w.job.Last = &journal.Entry{Kind: journal.KindInterrupt, Abandoned: 1}
			w.ExpiresAt = now + 30*second
		}},
		[]explain.Kind{explain.KindClosed},
		"the job was interrupted with code 410 after 40 s, by an interrupt that was sent to it: refused; 1 open obligation was abandoned; it is removed in 30 s", nil,
	},
	"not looked up": {
		[]func(*world){closed(journal.JobFailed, 402, "no money"), func(w *world) { w.job.Last = nil }},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 402 after 40 s: no money; mend what failed first", nil,
	},
	"tasks are open": {
		[]func(*world){closed(journal.JobCompleted, 200, ""), func(w *world) { w.Ended = false }},
		[]explain.Kind{explain.KindTasks, explain.KindClosed},
		"its completion tasks (output, answer to its parent, expiry) are not done: the message that closed it comes again and does them", nil,
	},
	"tasks wait for a person": {
		[]func(*world){closed(journal.JobCompleted, 200, ""), func(w *world) {
			w.Ended = false
			w.letter(w.row(journal.MessageOutcome, "bill"), "stuck", "refused by the database")
		}},
		[]explain.Kind{explain.KindPerson, explain.KindTasks, explain.KindClosed},
		"bill waits for a person since 2 min: dead letter 7 (stuck): refused by the database", nil,
	},
	"quarantined": {
		[]func(*world){func(w *world) {
			w.State = journal.JobQuarantined
			w.job.Last = &journal.Entry{Seq: 9, Kind: journal.KindQuarantine, Trouble: &journal.Trouble{Message: "a digit went back"}}
		}},
		[]explain.Kind{explain.KindQuarantined},
		"the job is quarantined: a digit went back (entry 9); its messages are taken and nothing of it goes on", nil,
	},
	"quarantined, not looked up": {
		[]func(*world){func(w *world) { w.State = journal.JobQuarantined }},
		[]explain.Kind{explain.KindQuarantined},
		"the job is quarantined: its stored state is against the laws; its messages are taken and nothing of it goes on", nil,
	},
	"expired": {
		[]func(*world){func(w *world) { w.State, w.Closed = journal.JobExpired, now-hour }},
		[]explain.Kind{explain.KindExpired},
		"the job (generation 1) ended at 2026-11-21 11:00:00 UTC and was removed after its time: only its key, its generation and its head are kept", nil,
	},
}

func TestWhySaysHowAJobEnded(t *testing.T) {
	t.Parallel()
	for name, c := range ended {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, everything)
			for _, change := range c.make {
				change(w)
			}
			var kinds []explain.Kind
			reasons := explain.Why(&w.job)
			for _, r := range reasons {
				kinds = append(kinds, r.Kind)
			}
			require.Equal(t, c.kind, kinds)
			require.Equal(t, c.text, reasons[0].Text)
			if c.do != nil {
				require.Equal(t, c.do, append([]string{}, reasons[len(reasons)-1].Commands...))
			}
		})
	}
}
