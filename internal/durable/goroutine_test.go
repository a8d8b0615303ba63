package durable

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// E15: a branch knows its own goroutine from those of users and from those of other branches.
func TestE15ABranchKnowsItsGoroutine(t *testing.T) {
	t.Parallel()
	run := func(b *branch, look func()) {
		b.grant <- struct{}{}
		b.start(t.Context(), func(context.Context) { look() })
		<-b.ended
	}
	elsewhere := func(b *branch) (is bool) {
		done := make(chan struct{})
		go func() { defer close(done); is = b.within() }()
		<-done
		return is
	}
	one, other := newWalk(nil, nil).branch(nil, ""), newWalk(nil, nil).branch(nil, "")
	run(one, func() {
		require.True(t, one.within())
		require.False(t, elsewhere(one))
		run(other, func() {
			require.True(t, other.within())
			require.False(t, one.within())
			require.False(t, elsewhere(other))
		})
	})
	require.False(t, one.within(), "it has ended")
}
