package engine

import (
	"context"
	"crypto/sha256"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// E10, W3: operators of one dead letter share a commit, and only the first acts. One whose
// action does not fit is refused alone.
func TestE10OneOfManyOperatorsActs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{Committers: 1})
		require.NoError(t,
			c.DeadLetter(t.Context(), collation.DeadLetter{Reason: reasonUndecodable, Message: "x"}, []byte{0xff}))
		letters := lettersOf(t, c.store)
		require.Len(t, letters, 1)
		answer := &journal.Response{Kind: journal.ResponseTerminal, Code: 410, Error: &journal.Failure{Class: "operator"}}
		actions := []store.Action{
			{ID: letters[0].ID, Retry: true},
			{ID: letters[0].ID, Response: answer},
			{ID: letters[0].ID, Response: answer},
			{ID: 99, Retry: true},
			{ID: letters[0].ID},
		}
		errs := make([]error, len(actions))
		var all sync.WaitGroup
		for i := range actions {
			all.Go(func() { errs[i] = c.Act(context.Background(), actions[i]) })
		}
		all.Wait()
		require.Error(t, errs[0])
		acted := 0
		for _, err := range errs[1:3] {
			if err == nil {
				acted++
			} else {
				require.ErrorIs(t, err, store.ErrStale)
			}
		}
		require.Equal(t, 1, acted)
		require.ErrorIs(t, errs[3], store.ErrNotFound)
		require.ErrorIs(t, errs[4], store.ErrRejected)
		letters = lettersOf(t, c.store)
		require.Equal(t, collation.LetterFailed, letters[0].State)
	})
}

// E6, W3: an output of a missing job is refused, and no other call with it.
func TestE6PayloadsAreRefusedAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{Committers: 1})
		job := c.Start(t.Context(), c.requests(1))[0]
		require.NoError(t, job.Err)
		body := []byte(`"large"`)
		ids := []journal.JobID{job.Job, {9}, job.Job}
		errs := make([]error, len(ids))
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() { errs[i] = c.Worker().PutPayload(context.Background(), ids[i], sha256.Sum256(body), body) })
		}
		all.Wait()
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], store.ErrNotFound)
		require.NoError(t, errs[2])
		require.ErrorIs(t, c.Worker().PutPayload(t.Context(), job.Job, journal.Digest{1}, body), store.ErrRejected)
	})
}
