package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
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
		l, tx := &loop{Committer: &Committer{}}, &slowStore{trip: clockTrip}
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
		time.Sleep(time.Second / 2)
		require.Equal(t, clockTrip/2, now(3), "it is behind by as much as it was under way")
		time.Sleep(time.Second / 2)
		now(4)
	})
}

// J5: of two starts one after the other the second is the later one in every list, though
// another loop takes it, whose reading was longer under way.
func TestJ5OneProcessTellsTimeInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, tx := &Committer{}, &slowStore{}
		one, two := &loop{Committer: c}, &loop{Committer: c}
		last := collation.Micros(0)
		later := func(l *loop, wants ...store.Want) {
			t.Helper()
			time.Sleep(10 * time.Microsecond)
			got, err := l.load(t.Context(), tx, wants)
			require.NoError(t, err)
			require.Greater(t, got.Now, last)
			last = got.Now
		}
		later(one)
		later(one)
		tx.trip = clockTrip - 1
		later(two, store.Want{})
		for range 3 {
			later(one)
			later(two)
		}
		require.LessOrEqual(t, int64(last), time.Now().UnixMicro(), "it is never ahead of the database")

		c.clock.last += collation.Micros(time.Hour.Microseconds())
		now, ok := c.clock.tell()
		require.True(t, ok)
		require.LessOrEqual(t, int64(now), time.Now().UnixMicro(), "a database whose clock was set back is followed")
	})
}
