package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/explain"
	"github.com/quipu-journal/quipu/journal"
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

var ended = map[string]struct {
	make []func(*world)
	kind []explain.Kind
	text string
}{
	"completed": {
		[]func(*world){closed(journal.JobCompleted, 200, ""), func(w *world) { w.Output = []byte(`{"id":7}`) }},
		[]explain.Kind{explain.KindClosed},
		`the job completed with code 200 after 40 s, by charge at ,0,0; its output is {"id":7}`,
	},
	"failed": {
		[]func(*world){closed(journal.JobFailed, 402, "no money"), func(w *world) { w.job.Last.Abandoned = 2 }},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 402 after 40 s, by charge at ,0,0: no money; 2 open obligations were abandoned",
	},
	"interrupted by itself": {
		[]func(*world){closed(journal.JobInterrupted, 410, "refused"), func(w *world) { w.job.Last.Activity, w.job.Last.Kind = "stop", journal.KindLeg1 }},
		[]explain.Kind{explain.KindClosed},
		"the job was interrupted with code 410 after 40 s, by stop at ,0,0: refused",
	},
	"interrupted from outside, to be removed": {
		[]func(*world){closed(journal.JobInterrupted, 410, "refused"), func(w *world) {
			w.job.Last = &journal.Entry{Kind: journal.KindInterrupt, Abandoned: 1}
			w.ExpiresAt = now + 30*second
		}},
		[]explain.Kind{explain.KindClosed},
		"the job was interrupted with code 410 after 40 s, by an interrupt that was sent to it: refused; 1 open obligation was abandoned; it is removed in 30 s",
	},
	"not looked up": {
		[]func(*world){closed(journal.JobFailed, 402, "no money"), func(w *world) { w.job.Last = nil }},
		[]explain.Kind{explain.KindClosed},
		"the job failed with code 402 after 40 s: no money",
	},
	"tasks are open": {
		[]func(*world){closed(journal.JobCompleted, 200, ""), func(w *world) { w.Ended = false }},
		[]explain.Kind{explain.KindTasks, explain.KindClosed},
		"its completion tasks (output, answer to its parent, expiry) are not done: the message that closed it comes again and does them",
	},
	"tasks wait for a person": {
		[]func(*world){closed(journal.JobCompleted, 200, ""), func(w *world) {
			w.Ended = false
			w.letter(w.row(journal.MessageOutcome, "bill"), "stuck", "refused by the database")
		}},
		[]explain.Kind{explain.KindPerson, explain.KindTasks, explain.KindClosed},
		"bill at ,0,0 waits for a person since 2 min: dead letter 7 (stuck): refused by the database",
	},
	"quarantined": {
		[]func(*world){func(w *world) {
			w.State = journal.JobQuarantined
			w.job.Last = &journal.Entry{Seq: 9, Kind: journal.KindQuarantine, Trouble: &journal.Trouble{Message: "a digit went back"}}
		}},
		[]explain.Kind{explain.KindQuarantined},
		"the job is quarantined: a digit went back (entry 9); its messages are taken and nothing of it goes on",
	},
	"quarantined, not looked up": {
		[]func(*world){func(w *world) { w.State = journal.JobQuarantined }},
		[]explain.Kind{explain.KindQuarantined},
		"the job is quarantined: its stored state is against the laws; its messages are taken and nothing of it goes on",
	},
	"expired": {
		[]func(*world){func(w *world) { w.State, w.Closed = journal.JobExpired, now-hour }},
		[]explain.Kind{explain.KindExpired},
		"the job (generation 1) ended at 2026-11-21 11:00:00 UTC and was removed after its time: only its key, its generation and its head are kept",
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
		})
	}
}
