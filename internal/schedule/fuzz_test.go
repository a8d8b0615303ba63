package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/schedule"
)

// FuzzParse: an accepted schedule has a next time after every time, at a whole minute and
// none in between; any other is refused with the reason.
func FuzzParse(f *testing.F) {
	for _, seed := range []struct{ cron, zone string }{
		{"*/5 * * * *", ""},
		{"0 0 29 2 *", "UTC"},
		{"30 2 * * sun", "Europe/Berlin"},
		{"0 0 31 2 *", ""},
		{"59 23 31 12 1-5", "Pacific/Apia"},
		{"15 0-23/2 1,15 jan-jun 7", "Australia/Lord_Howe"},
		{"* * * * 5-7/2", ""},
		{"0 3 * * *", "Local"},
	} {
		f.Add(seed.cron, seed.zone, int64(1_774_750_000))
	}
	f.Fuzz(func(t *testing.T, cron, zone string, at int64) {
		s, err := schedule.Parse(cron, zone)
		if err != nil {
			require.ErrorIs(t, err, schedule.ErrSpec)
			require.Nil(t, s)
			return
		}
		require.LessOrEqual(t, len(cron), schedule.MaxCron)
		const years = 200 * 365 * 24 * 3600
		after := time.Unix((at%years+years)%years, 0)
		next := s.Next(after)
		require.False(t, next.IsZero(), "after %s", after.UTC())
		require.True(t, next.After(after), "%s after %s", next, after)
		require.Zero(t, next.Nanosecond())
		// Any moment between two times has the same next one.
		require.True(t, s.Next(next.Add(-1)).Equal(next), "just before %s comes %s", next, s.Next(next.Add(-1)))
		between := after.Add(next.Sub(after) / 2)
		require.True(t, s.Next(between).Equal(next), "%s, then from %s: %s", next, between, s.Next(between))
		require.NotEqual(t, schedule.Key("f", next), schedule.Key("f", s.Next(next)))
	})
}
