package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// C15: an interrupt does not descend to a child that was refused: the job does not exist, and
// the message would become a dead letter.
func TestC15DescendSparesARefusedChild(t *testing.T) {
	t.Parallel()
	f, err := flow.New("parent").Version("1").Trigger("start").Await("ask", "nobody").Transition("start", "ask").Build()
	require.NoError(t, err)
	w := newWorld(f, "k", []byte(`{}`), collation.Mode{Resend: 1e6})
	for len(w.queue) > 0 {
		w.next()
	}
	start := w.sent[0]
	order, err := start.Order()
	require.NoError(t, err)
	refusal := order.Refusal(start.Job, 404, "not_found", "no such flow", w.state.Now, w.mode)
	delete(w.state.Rows, start.GUID)
	w.arrive(&refusal)
	o := &collation.InterruptOrder{Code: 410, Reason: "enough", Throw: true, Descend: true}
	stop, err := o.Row(collation.AskedInterruptGUID("x", w.state.Job.ID), w.state.Job.ID, w.state.Now)
	require.NoError(t, err)
	w.state.Rows[stop.GUID] = &stop
	w.handle(message(&stop))
	require.Equal(t, journal.JobInterrupted, w.state.Job.State)
	require.Len(t, w.sent, 1, "nothing but the start")
}
