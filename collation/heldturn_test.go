package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// T1, I6: the answer to a held request came after all, and its steps commit apart. If its
// message is lost between them, only the row can bring the rest, so the row must have a due
// time.
func TestT1TurnedRowIsNotHeld(t *testing.T) {
	t.Parallel()
	w, a := atLeg2(t, collation.Mode{Resend: 1e6, Fold: true})
	held := *w.state.Rows[a.GUID]
	held.Held, held.Dead = collation.HeldStuck, true // as after too many runs (E9)
	w.state.Rows[a.GUID] = &held
	m := respond(a, &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Ref: journal.Digest{1}})
	require.False(t, w.commitOnce(m).Done)
	row := w.state.Rows[a.GUID]
	require.Equal(t, journal.MessageAnswer, row.Kind)
	require.Empty(t, row.Held)
	require.Equal(t, w.state.Now+1e6, row.NextAt)
	w.handle(message(row))
	require.Nil(t, w.state.Rows[a.GUID])
	require.Equal(t, []journal.GUID{a.GUID}, w.resolve())
}
