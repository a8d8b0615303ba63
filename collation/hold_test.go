package collation_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// C5, C10: a message that an engine cannot handle (its build cannot read the flow, an answer
// does not decode) is held once. A further delivery of an ended or held message writes nothing:
// it must neither quarantine a healthy job nor add a dead letter each time.
func TestC5HoldOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	cause := errors.New("flow chain version 1 does not compile with this build")
	w, a := atLeg2(t, collation.Mode{Resend: 1e6, Fold: true})
	m := respond(a, ok(`{"x":1}`))
	w.handle(m)
	handled := collation.Hold(w.state, &m, w.mode, cause)
	require.Equal(t, collation.Unlicensed, handled.Outcome)
	require.Nil(t, handled.Entry)
	start := collation.Message{Kind: journal.MessageLeg1, Job: m.Job, GUID: journal.GUID{9}, Row: journal.GUID{9}, Activity: "a", DAD: a.DAD}
	gone := collation.Hold(w.state, &start, w.mode, cause)
	require.Equal(t, collation.Unlicensed, gone.Outcome)
	require.Nil(t, gone.Entry)

	b := respond(&w.asked[1], ok(`{}`))
	p := collation.Hold(w.state, &b, w.mode, cause)
	require.Equal(t, collation.Stuck, p.Outcome)
	w.commit(p)
	again := collation.Hold(w.state, &b, w.mode, cause)
	require.Equal(t, collation.HeldBack, again.Outcome)
	require.Empty(t, again.Dead, "one letter")
	require.True(t, again.Done)
	require.Equal(t, journal.JobOpen, w.state.Job.State)
}

// C15: a message that was accepted before a close cancelled its row has only markers left to
// set. If even these are refused, the closed job stays as it is.
func TestC15HoldAfterClose(t *testing.T) {
	t.Parallel()
	w, a := atLeg2(t, collation.Mode{Resend: 1e6, Stepwise: true})
	m := respond(a, ok(`{"x":1}`))
	w.forget()
	w.commit(w.step(&m)) // entered only
	o := &collation.InterruptOrder{Code: 410, Reason: "enough", Throw: true}
	row, err := o.Row(journal.GUID{7}, w.state.Job.ID, w.state.Now)
	require.NoError(t, err)
	row.Publication = 1
	w.arrive(&row)
	w.handle(message(&row))
	require.Equal(t, journal.JobInterrupted, w.state.Job.State)
	p := collation.Hold(w.state, &m, w.mode, errors.New("refused"))
	require.Equal(t, collation.Unlicensed, p.Outcome)
	require.Nil(t, p.Entry)
}
