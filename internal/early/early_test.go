package early_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
)

// L4: a topic is early if its handler says so, and quick once its runs are.
func TestTopics(t *testing.T) {
	t.Parallel()
	topics := early.NewTopics()
	topics.Serve("t")
	may := func(name string) [2]bool {
		a, b := topics.May(name)
		return [2]bool{a, b}
	}
	require.Equal(t, [2]bool{false, false}, may("other"))
	require.Equal(t, [2]bool{true, false}, may("t"), "it has not run yet")
	topics.Ran("t", 10*time.Microsecond)
	require.Equal(t, [2]bool{true, true}, may("t"))
	topics.Ran("t", time.Second)
	require.Equal(t, [2]bool{true, false}, may("t"))
	for range 100 {
		topics.Ran("t", 10*time.Microsecond)
	}
	require.Equal(t, [2]bool{true, true}, may("t"), "it has become quick again")
	topics.Suspend([]string{"t"})
	require.Equal(t, [2]bool{false, false}, may("t"), "a process with runs of it has died")
	topics.Suspend(nil)
	require.Equal(t, [2]bool{true, true}, may("t"))
	topics.Count("t", store.EarlyRuns{Kept: 2, Late: 1})
	topics.Count("t", store.EarlyRuns{Kept: 1, Dropped: 1})
	topics.Serve("idle")
	runs := topics.Runs([]string{"idle", "t", "other"})
	require.Positive(t, runs[1].Mean)
	require.Less(t, runs[1].Mean, time.Millisecond)
	runs[1].Mean = 0
	require.Equal(t, []store.EarlyRuns{{}, {Kept: 3, Late: 1, Dropped: 1}, {}}, runs)
	var none *early.Topics
	none.Serve("t")
	none.Ran("t", 1)
	none.Suspend(nil)
	m, q := none.May("t")
	require.False(t, m || q, "nothing is early")
}

// L5, L6: an answer is taken until the cause takes none; then its run waits, and is told the outcome.
func TestCause(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := early.NewCause()
	taken := 0
	require.True(t, c.Answer(&transport.Message{Holder: "a"}, func() { taken++ }))
	<-c.Came()
	require.Equal(t, "a", c.Take().Answers[0].Holder)
	require.True(t, c.Answer(&transport.Message{Holder: "b"}, func() { taken++ }))
	first, waits := &early.Start{}, 0
	require.True(t, c.Start(first))
	offers := c.Take()
	require.Equal(t, []*early.Start{first}, offers.Starts)
	require.Equal(t, "b", offers.Answers[0].Holder)
	require.True(t, c.Answer(&transport.Message{Holder: "b"}, func() {}))
	require.True(t, c.Start(&early.Start{}))
	require.Equal(t, "b", c.Close()[0].Holder)
	require.False(t, c.Start(&early.Start{}), "it is decided after the commit")
	c.OnWait(func() { waits++ })
	require.False(t, c.Answer(&transport.Message{Holder: "c"}, func() { taken++ }))
	require.Equal(t, 2, taken)
	require.True(t, c.Open())
	ended, end := context.WithCancel(ctx)
	end()
	require.ErrorIs(t, c.Wait(ended), context.Canceled)
	require.Equal(t, 1, waits)
	stops := 0
	c.OnFailure(func(error) { stops++ })
	forget := c.OnFailure(func(error) { stops += 10 })
	forget()
	c.Settle(false)
	require.False(t, c.Open())
	require.Equal(t, 1, stops, "once, and no run that has ended")
	c.OnFailure(func(err error) {
		require.ErrorIs(t, err, early.ErrUncommitted)
		stops++
	})
	require.Equal(t, 2, stops, "it began late, and is told at once")
	require.ErrorIs(t, c.Wait(ctx), early.ErrUncommitted)
	require.ErrorIs(t, c.Wait(ctx), store.ErrStale)

	c = early.NewCause()
	c.OnFailure(func(error) { t.Error("it has committed") })
	c.Settle(true)
	require.NoError(t, c.Wait(ctx))
}
