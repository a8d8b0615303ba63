package examples_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// decide sends the approver's decision.
func decide(t *testing.T, s *Space, key string, opts ...quipu.SignalOption) quipu.SignalResult {
	t.Helper()
	res, err := s.Signal(t.Context(), "approval.decided", key, map[string]string{"by": "Grace"}, opts...)
	require.NoError(t, err)
	return res
}

// waits says that the job waits for a signal.
func waits(v *store.JobView) bool { return len(v.Waits) == 1 }

// A decision in time cancels the timer: there is no reminder (P15).
func TestApproved(t *testing.T) {
	t.Parallel()
	s := open(t, "approval")
	s.Begin("approval", "trip-1", `{"request": "trip to Lima", "approver": "Grace"}`)
	s.Until("trip-1", "the wait", waits)
	require.Equal(t, quipu.SignalConsumed, decide(t, s, "trip-1").State)
	require.JSONEq(t, `{"status": "approved", "decision": {"by": "Grace"}, "reminders": 0}`, s.Output("trip-1"))
	require.Equal(t, []string{",0^4"}, s.Addresses("trip-1", "book"))
	require.Empty(t, s.Addresses("trip-1", "remind"))
}

// An error code is a decision, too, and its payload is the error's data.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := open(t, "approval")
	s.Begin("approval", "trip-2", `{"request": "trip to Lima", "approver": "Grace"}`)
	decide(t, s, "trip-2", quipu.Code(403))
	require.JSONEq(t, `{"status": "refused", "decision": {"by": "Grace"}, "reminders": 0}`, s.Output("trip-2"))
	require.Equal(t, []string{",0^4"}, s.Addresses("trip-2", "refused"))
}

// A decision that comes before the job is kept for it (P13).
func TestDecidedBeforeItWasAsked(t *testing.T) {
	t.Parallel()
	s := open(t, "approval")
	require.Equal(t, quipu.SignalKept, decide(t, s, "trip-3").State)
	s.Begin("approval", "trip-3", `{"request": "trip to Lima", "approver": "Grace"}`)
	require.Contains(t, s.Output("trip-3"), `"approved"`)
}

// A decision after a reminder ends the loop, whenever it comes.
func TestApprovedAfterReminders(t *testing.T) {
	t.Parallel()
	s := open(t, "approval")
	s.Begin("approval", "trip-4", `{"request": "trip to Lima", "approver": "Grace", "remind_after": "100ms", "reminders": 9999}`)
	s.Until("trip-4", "a reminder", func(*store.JobView) bool { return len(s.Addresses("trip-4", "remind")) > 0 })
	decide(t, s, "trip-4")
	var out struct {
		Status    string
		Reminders int
	}
	require.NoError(t, json.Unmarshal([]byte(s.Output("trip-4")), &out))
	require.Equal(t, "approved", out.Status)
	require.Positive(t, out.Reminders)
	require.Len(t, s.Addresses("trip-4", "remind"), out.Reminders)
}

// Nobody decides: there are so many reminders, each in its own pass, and then the job ends as
// interrupted.
func TestNobodyDecides(t *testing.T) {
	t.Parallel()
	s := open(t, "approval")
	s.Begin("approval", "trip-5", `{"request": "trip to Lima", "approver": "Grace", "remind_after": "50ms", "reminders": 2}`)
	end := s.Failure("trip-5")
	require.Equal(t, journal.JobInterrupted, end.State)
	require.Equal(t, 408, end.Code)
	require.Equal(t, "nobody decided on trip to Lima", end.Cause.Message)
	require.Equal(t, []string{",0,1,0,0", ",0^4"}, s.Addresses("trip-5", "remind"))
	require.Equal(t, []string{",0,2,0,0"}, s.Addresses("trip-5", "give_up"))
	require.Empty(t, s.View("trip-5").Waits)
}
