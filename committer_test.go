package quipu_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/workers"
)

// W3: a caller's transaction that starts a job holds up only starts of the same key, by callers and
// of children, however many there are. Other starts and messages of this process go on while it is
// open, and a start of its key learns how it ended.
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
		begun := s.wanting(key, 12, 6)
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
		devtest.AwaitAll(t, "the end of the other jobs", others.Wait)
		select {
		case <-begun:
			t.Fatal("a start of its key did not wait for it")
		case <-time.After(10 * time.Millisecond):
		}
		if commits {
			require.NoError(t, tx.Commit(ctx))
		} else {
			require.NoError(t, tx.Rollback(ctx))
		}
		n := 0
		for range cap(begun) {
			if devtest.Await(t, "the answer to a start of the key", begun) {
				n++
			}
		}
		require.Equal(t, map[bool]int{true: 0, false: 1}[commits], n, "after a rollback the key is free again")
	}
}

// wanting has callers and the children of jobs want one key, more than wait for others at the same
// time. It tells of each whether it began the job.
func (s *space) wanting(key string, callers, children int) (begun chan bool) {
	ctx := s.t.Context()
	begun = make(chan bool, callers+children)
	for range callers {
		go func() {
			job, err := s.Start(ctx, "short", key, map[string]int{})
			if err != nil {
				s.t.Errorf("start %s: %v", key, err)
			}
			begun <- err == nil && !job.Existing
		}()
	}
	for i := range children {
		go func() {
			job, err := s.Start(ctx, "asks", fmt.Sprint("parent-", key, i), map[string]string{"key": key})
			if err == nil {
				_, err = s.Wait(ctx, job)
			}
			if err != nil && !strings.Contains(err.Error(), "belongs to another job") {
				s.t.Errorf("the parent of %s: %v", key, err)
			}
			begun <- err == nil
		}()
	}
	return begun
}
