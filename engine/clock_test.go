package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal/store"
)

// slowStore answers a load when it has been under way for some time.
type slowStore struct {
	store.Committer
	trip  time.Duration
	loads int
}

func (s *slowStore) Load(context.Context, []store.Want, bool) (*store.Loaded, error) {
	s.loads++
	now := collation.Micros(time.Now().UnixMicro())
	time.Sleep(s.trip)
	return &store.Loaded{Now: now}, nil
}

// J5: time is told from the last reading of the database's clock only if that reading was not
// long under way: it is behind by so much, and what began later would seem to have begun earlier.
func TestJ5ASlowReadingOfTheClockIsNotUsed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, tx := &loop{}, &slowStore{trip: clockTrip}
		now := func(loads int) time.Duration {
			got, err := l.load(t.Context(), tx, nil)
			require.NoError(t, err)
			require.Equal(t, loads, tx.loads)
			return time.Since(time.UnixMicro(int64(got.Now)))
		}
		now(1)
		now(2)
		tx.trip = clockTrip / 2
		now(3)
		time.Sleep(clockAge / 2)
		require.Equal(t, clockTrip/2, now(3), "it is behind by as much as it was under way")
		time.Sleep(clockAge / 2)
		now(4)
	})
}
