package quipu_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/workers"
)

// W3: a caller's transaction that starts a job holds up only starts of the same key. Other starts
// and messages of this process go on while it is open, and a start of its key learns how it
// ended.
func TestW3ACallersTransactionStallsNobody(t *testing.T) {
	t.Parallel()
	s := newSpaceOf(t, workers.New(), `
flow: short
version: "1"
activities:
  start: {type: trigger}
  work: {type: worker, topic: echo, input: {n: 1}}
transitions: {start: [work]}
`)
	ctx := t.Context()
	conn := s.db()
	for _, commits := range []bool{true, false} {
		key := fmt.Sprint("wanted-", commits)
		tx, err := conn.Begin(ctx)
		require.NoError(t, err)
		_, err = s.StartTx(ctx, tx, "short", key, map[string]int{})
		require.NoError(t, err)
		type start struct {
			job quipu.Job
			err error
		}
		wanted := make(chan start, 3)
		for range cap(wanted) {
			go func() {
				job, err := s.Start(ctx, "short", key, map[string]int{})
				wanted <- start{job, err}
			}()
		}
		var others sync.WaitGroup
		for i := range 50 { // all end while the transaction is open
			others.Go(func() {
				job, err := s.Start(ctx, "short", fmt.Sprint("other-", commits, i), map[string]int{})
				if err == nil {
					_, err = s.Wait(ctx, job)
				}
				if err != nil {
					t.Errorf("another job: %v", err)
				}
			})
		}
		others.Wait()
		select {
		case w := <-wanted:
			t.Fatalf("a start of its key did not wait for it: %v", w.err)
		case <-time.After(10 * time.Millisecond):
		}
		if commits {
			require.NoError(t, tx.Commit(ctx))
		} else {
			require.NoError(t, tx.Rollback(ctx))
		}
		begun := 0
		for range cap(wanted) {
			w := <-wanted
			require.NoError(t, w.err)
			if !w.job.Existing {
				begun++
			}
		}
		if commits {
			require.Zero(t, begun)
		} else {
			require.Equal(t, 1, begun, "the key was free again")
		}
	}
}
