package examples_test

import (
	"context"
	"testing"
	"time"
	_ "time/tzdata" // for machines without it

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/schedule"
	"github.com/quipu-journal/quipu/internal/store"
)

// nights is how long no engine looked at the schedule.
const nights = 5

// sleepover sets the schedule of the flow as if no engine had looked at it for some nights, and
// returns the times before and after.
func sleepover(t *testing.T, s *Space) (last, now time.Time) {
	t.Helper()
	at := of(t, s)
	before := at.Now - collation.Micros(nights*24*time.Hour/time.Microsecond)
	db, err := pgx.Connect(t.Context(), s.Postgres)
	require.NoError(t, err)
	defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()
	_, err = db.Exec(t.Context(), "UPDATE quipu_default.flows SET scheduled = $1 WHERE name = 'nightly'", int64(before))
	require.NoError(t, err)
	return time.UnixMicro(int64(before)), time.UnixMicro(int64(at.Now))
}

func of(t *testing.T, s *Space) store.Schedule {
	t.Helper()
	all, err := below.Of(s.Runtime).Schedules(t.Context())
	require.NoError(t, err)
	for _, at := range all {
		if at.Ref.Name == "nightly" {
			return at
		}
	}
	require.Fail(t, "the flow has no schedule")
	return store.Schedule{}
}

// due returns the latest time of the schedule up to now.
func due(t *testing.T, last, now time.Time) time.Time {
	t.Helper()
	spec, err := schedule.Parse("0 2 * * *", "Europe/Berlin")
	require.NoError(t, err)
	fire, _ := spec.Missed(last, now, schedule.CatchUpOne, 1)
	require.Len(t, fire, 1)
	return fire[0]
}

// After nights without an engine only the latest one is started.
func TestCatchesUpOne(t *testing.T) {
	t.Parallel()
	s := open(t, "nightly", nil)
	last, now := sleepover(t, s)
	key := schedule.Key("nightly", due(t, last, now))
	require.Eventually(t, func() bool { return len(s.Keys("nightly@")) > 0 }, time.Minute, 10*time.Millisecond)
	require.JSONEq(t, `{"night": "`+key+`", "closed": "main"}`, s.Output(key))
	require.Equal(t, []string{key}, s.Keys("nightly@"))
}

// A night that was started by hand is not started again.
func TestStartedByHand(t *testing.T) {
	t.Parallel()
	s := open(t, "nightly", nil)
	at := of(t, s)
	now := time.UnixMicro(int64(at.Now))
	key := schedule.Key("nightly", due(t, now.AddDate(0, 0, -nights), now))
	s.Begin("nightly", key, `{"book": "main"}`)
	require.JSONEq(t, `{"night": "`+key+`", "closed": "main"}`, s.Output(key))
	job, err := s.Find(t.Context(), key)
	require.NoError(t, err)
	sleepover(t, s)
	require.Eventually(t, func() bool { return of(t, s).Last >= at.Now }, time.Minute, 10*time.Millisecond, "an engine looks at the schedule")
	require.Equal(t, []string{key}, s.Keys("nightly@"))
	again, err := s.Find(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, job.ID, again.ID)
}
