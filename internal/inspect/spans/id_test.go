package spans_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/inspect/spans"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// O1: a job that was started under a span is in its trace; any other has a trace of its own, the same
// in every process.
func TestTraceOfAJob(t *testing.T) {
	t.Parallel()
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	job := journal.DeriveJob("shop", "order-42", 1)
	own := spans.Of(job, "")
	require.Equal(t, "c9d2ffe53b24a9829d8a8e368ce92069", own.Trace.String(), "it is for ever")
	require.True(t, own.Caller.IsZero())
	for _, text := range []string{"00-" + id + "-" + span + "-01", "cc-" + id + "-" + span + "-01-more"} {
		c := spans.Of(job, text)
		require.Equal(t, id+" "+span, c.Trace.String()+" "+c.Caller.String(), text)
		require.EqualValues(t, 1, c.Flags)
		require.Equal(t, "00-"+id+"-"+spans.OfJob(job).String()+"-00", c.Traceparent(spans.OfJob(job), 0))
	}
	for _, text := range []string{
		"nonsense", "00-" + id + "-" + span, "00-" + id + "-" + span + "-01-more", "ff-" + id + "-" + span + "-01",
		"00-00000000000000000000000000000000-" + span + "-01", "00-" + id + "-0000000000000000-01",
		"00-0AF7651916CD43DD8448EB211C80319C-" + span + "-01", "00-" + id + "-" + span + "-0g", "00_" + id + "_" + span + "_01",
		"cc-" + id + "-" + span + "-01more",
	} {
		require.Equal(t, own, spans.Of(job, text), text)
	}
}

// O1: what a span is about tells it from all others.
func TestIDsOfSpans(t *testing.T) {
	t.Parallel()
	job, guid := journal.JobID{1}, journal.GUID{1}
	ids := map[view.SpanID]string{}
	for what, id := range map[string]view.SpanID{
		"job": spans.OfJob(job), "other job": spans.OfJob(journal.JobID{2}), "message": spans.OfMessage(guid),
		"attempt": spans.OfAttempt(guid, 1), "next turn": spans.OfAttempt(guid, 2),
		"activity": spans.OfActivity(job, "ab", "c", 0), "other split": spans.OfActivity(job, "a", "bc", 0), "pass": spans.OfActivity(job, "ab", "c", 2),
	} {
		require.False(t, id.IsZero())
		require.Empty(t, ids[id], what)
		ids[id] = what
	}
	require.Equal(t, "81c2", spans.OfJob(job).String()[:4], "it is for ever")
}
