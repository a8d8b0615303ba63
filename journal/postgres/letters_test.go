package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal/store"
)

// E10: an operator's action waits for a row whose dead letter ends meanwhile. The action is too
// late, whatever it would do to the row as it is then.
func TestActOnALetterThatJustEnded(t *testing.T) {
	t.Parallel()
	s := open(t)
	startJobs(t, s, "k")
	require.NoError(t, s.run(t, `INSERT INTO dead_letters (job, guid, kind, activity, dad, reason, message, ledger, at)
		SELECT job, guid, kind, activity, dad, 'parked', 'was it paid?', 0, 1 FROM dispatches`))
	require.NoError(t, s.run(t, "UPDATE dispatches SET held = 'parked', dead = true"))
	list := must(s.DeadLetters(t.Context(), store.DeadFilter{Limit: 10}))(t)
	require.Len(t, list, 1)
	completion := blocker(t, s, "UPDATE dispatches SET held = NULL, dead = false; UPDATE dead_letters SET state = 'answered'")
	acted := make(chan error, 1)
	go func() {
		acted <- s.driven().Act(t.Context(), store.Action{ID: list[0].ID, Done: []byte(`1`), Who: "ann"})
	}()
	waitFor(t, s, someoneWaits)
	must(completion.Exec(t.Context(), "COMMIT"))(t)
	require.ErrorIs(t, <-acted, store.ErrStale)
}
