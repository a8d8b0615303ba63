package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// T1, E9: an attempt failed, and its entry is committed when the request's time is over. The
// answer that the sweeper puts into a row that is still a request must not become the input of
// the next attempt.
func TestT1TurnedBetweenEntryAndSteps(t *testing.T) {
	t.Parallel()
	w, a := atLeg2(t, stepwise)
	input := string(w.state.Rows[a.GUID].Body)
	m := respond(a, &journal.Response{
		Kind: journal.ResponseFailedAttempt, Code: 500, Error: &journal.Failure{Class: "error", Message: "no"},
	})
	require.False(t, w.commitOnce(m).Done)
	if row := *w.state.Rows[a.GUID]; row.Kind == journal.MessageRequest { // as collation.Overdue does
		row.Kind, row.Body, row.TurnSent, row.WithinAt = journal.MessageAnswer, journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: 408}), 0, collation.Never
		w.state.Rows[a.GUID] = &row
	}
	w.handle(m)
	row := w.state.Rows[a.GUID]
	require.Equal(t, journal.MessageRequest, row.Kind)
	require.Equal(t, 2, row.Turn)
	require.Equal(t, input, string(row.Body))
}
