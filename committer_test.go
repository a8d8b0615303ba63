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
`, `
flow: asks
version: "1"
activities:
  start: {type: trigger}
  child: {type: await, flow: short, id: "${ start.output.key }", input: {}}
transitions: {start: [child]}
`)
	ctx := t.Context()
	conn := s.db()
	for _, commits := range []bool{true, false} {
		key := fmt.Sprint("wanted-", commits)
		tx, err := conn.Begin(ctx)
		require.NoError(t, err)
		_, err = s.StartTx(ctx, tx, "short", key, map[string]int{})
		require.NoError(t, err)
		wanted := make(chan quipu.Job, 12) // more than wait for others at the same time
		begin := func(key string) quipu.Job {
			job, err := s.Start(ctx, "short", key, map[string]int{})
			if err != nil {
				t.Errorf("start %s: %v", key, err)
			}
			return job
		}
		for range cap(wanted) {
			go func() { wanted <- begin(key) }()
		}
		parents := make(chan error, 6) // nor do jobs whose children want the key
		for i := range cap(parents) {
			go func() {
				job, err := s.Start(ctx, "asks", fmt.Sprint("parent-", commits, i), map[string]string{"key": key})
				if err == nil {
					_, err = s.Wait(ctx, job)
				}
				parents <- err
			}()
		}
		var others sync.WaitGroup
		for i := range 50 { // all end while the transaction is open
			others.Go(func() {
				if _, err := s.Wait(ctx, begin(fmt.Sprint("other-", commits, i))); err != nil {
					t.Errorf("another job: %v", err)
				}
			})
		}
		others.Wait()
		select {
		case w := <-wanted:
			t.Fatalf("a start of its key did not wait for it: %v", w)
		case err := <-parents:
			t.Fatalf("a child with its key did not wait for it: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		if commits {
			require.NoError(t, tx.Commit(ctx))
		} else {
			require.NoError(t, tx.Rollback(ctx))
		}
		begun := 0
		for range cap(wanted) {
			if w := <-wanted; !w.Existing {
				begun++
			}
		}
		for range cap(parents) {
			err := <-parents
			if err == nil {
				begun++
				continue
			}
			require.ErrorContains(t, err, "belongs to another job")
		}
		require.Equal(t, map[bool]int{true: 0, false: 1}[commits], begun, "after a rollback the key is free again")
	}
}
