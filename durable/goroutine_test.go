package durable

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// E15: a branch knows its own goroutine from those of users and from those of other branches,
// whether it is the only one of the process or not. It is not parallel: it counts branches.
func TestE15ABranchKnowsItsGoroutine(t *testing.T) {
	run := func(b *branch, look func()) {
		b.grant <- struct{}{}
		b.start(t.Context(), func(context.Context) { look() })
		<-b.over
	}
	elsewhere := func(b *branch) (is bool) {
		done := make(chan struct{})
		go func() { defer close(done); is = b.within() }()
		<-done
		return is
	}
	one, other := newWalk(nil, nil).branch(nil, ""), newWalk(nil, nil).branch(nil, "")
	var deep func(n int)
	deep = func(n int) {
		if n > 0 {
			deep(n - 1)
			return
		}
		require.True(t, one.within())
		require.False(t, elsewhere(one))
	}
	require.Eventually(t, func() bool { return branches.Load() == 0 }, 10*time.Second, time.Millisecond, "those of other tests have ended")
	run(one, func() {
		require.True(t, one.alone())
		deep(1)
		deep(2 * maxFrames)
		run(other, func() {
			require.False(t, one.alone())
			require.True(t, other.within())
			require.False(t, one.within())
			require.False(t, elsewhere(other))
		})
	})
	last := newWalk(nil, nil).branch(nil, "")
	run(last, func() {
		require.True(t, last.within())
		require.False(t, one.within(), "it has ended")
	})
}
