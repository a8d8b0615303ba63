package transporttest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

// testRemoveStale removes the requests that are said to be stale, of topics that nobody serves, and of one
// whose consumer has gone with a delivery that it did not finish. All others stay.
func testRemoveStale(t *testing.T, s Setup) {
	unserved, left := transport.ToWork("nobody.serves"), transport.ToWork("left")
	msgs := slices.Concat(messages(unserved, 3), messages(left, 2), messages(transport.ToLane(1), 1))
	publish(t, s, msgs[3:5])
	gone := consume(t, s, left, 1)
	gone.next()
	gone.stop()
	publish(t, s, msgs[:3])
	publish(t, s, msgs[5:])
	removeStale := func(waited time.Duration, stale func(i int) bool) (removed int, asked []string) {
		removed, err := s.Bus.RemoveStale(t.Context(), waited,
			func(_ context.Context, of []transport.Message) ([]bool, error) {
				is := make([]bool, len(of))
				for n := range of {
					i := slices.Index(ids(msgs), of[n].ID())
					require.Equal(t, msgs[i].To, of[n].To)
					is[n] = stale(i)
				}
				asked = append(asked, ids(of)...)
				return is, nil
			})
		require.NoError(t, err)
		return removed, asked
	}
	removed, asked := removeStale(time.Hour, func(int) bool { return true })
	require.Zero(t, removed)
	require.Empty(t, asked, "none has waited for that long")
	removed, asked = removeStale(0, func(int) bool { return false })
	require.Zero(t, removed)
	require.ElementsMatch(t, ids(msgs[:5]), asked, "requests only")
	_, err := s.Bus.RemoveStale(t.Context(), 0, func(context.Context, []transport.Message) ([]bool, error) {
		return nil, errors.New("the database is away")
	})
	require.ErrorContains(t, err, "the database is away")
	removed, _ = removeStale(0, func(i int) bool { return i == 1 || i == 3 || i == 4 })
	require.Equal(t, 3, removed)
	require.ElementsMatch(t, []string{msgs[0].ID(), msgs[2].ID()}, consume(t, s, unserved, 3).acked(2))
	emptied(t, s, left)
	require.Equal(t, ids(msgs[5:]), consume(t, s, transport.ToLane(1), 1).acked(1))
}
