package examples_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/quiputest"
)

// decide sends the approver's decision.
func decide(w *quiputest.World, key string, code int) quipu.SignalState {
	return w.Send(quiputest.Signal{Topic: "approval.decided", Key: key, Code: code, Payload: map[string]string{"by": "Grace"}}).State
}

func request(w *quiputest.World, key, more string) *quiputest.Job {
	return w.Start("approval", key, json.RawMessage(`{"request": "trip to Lima", "approver": "Grace"`+more+`}`))
}

// A decision in time cancels the timer: there is no reminder (P15).
func TestApproved(t *testing.T) {
	play(t, "approval", func(t testing.TB, w *quiputest.World) {
		job := request(w, "trip-1", "")
		w.Settle()
		require.Equal(t, quipu.SignalConsumed, decide(w, "trip-1", 200))
		gives(t, job, `{"status": "approved", "decision": {"by": "Grace"}, "reminders": 0}`)
		w.Advance(100 * time.Hour)
		require.Equal(t, []string{",0^4"}, addresses(job, "book"))
		require.Empty(t, addresses(job, "remind"))
	})
}

// An error code is a decision, too, and its payload is the error's data.
func TestRefused(t *testing.T) {
	play(t, "approval", func(t testing.TB, w *quiputest.World) {
		job := request(w, "trip-2", "")
		decide(w, "trip-2", 403)
		gives(t, job, `{"status": "refused", "decision": {"by": "Grace"}, "reminders": 0}`)
		require.Equal(t, []string{",0^4"}, addresses(job, "refused"))
	})
}

// A decision that comes before the job is kept for it (P13).
func TestDecidedBeforeItWasAsked(t *testing.T) {
	play(t, "approval", func(t testing.TB, w *quiputest.World) {
		require.Equal(t, quipu.SignalKept, decide(w, "trip-3", 200))
		gives(t, request(w, "trip-3", ""), `{"status": "approved", "decision": {"by": "Grace"}, "reminders": 0}`)
	})
}

// A decision after a reminder ends the loop.
func TestApprovedAfterReminders(t *testing.T) {
	play(t, "approval", func(t testing.TB, w *quiputest.World) {
		job := request(w, "trip-4", `, "remind_after": "1h", "reminders": 9999`)
		w.Advance(3*time.Hour + time.Minute)
		decide(w, "trip-4", 200)
		gives(t, job, `{"status": "approved", "decision": {"by": "Grace"}, "reminders": 3}`)
		require.Len(t, addresses(job, "remind"), 3)
	})
}

// Nobody decides: there are so many reminders, each in its own pass, and then the job ends as
// interrupted.
func TestNobodyDecides(t *testing.T) {
	play(t, "approval", func(t testing.TB, w *quiputest.World) {
		job := request(w, "trip-5", "")
		require.Equal(t, "nobody decided on trip to Lima", job.Fails(408).Message)
		require.Equal(t, journal.JobInterrupted, job.State())
		require.Equal(t, []string{",0,1,0,0", ",0^4"}, addresses(job, "remind"))
		require.Equal(t, []string{",0,2,0,0"}, addresses(job, "give_up"))
		require.Empty(t, job.Info().Waits)
	})
}
