package schedule_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/schedule"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return v
}

func spec(t *testing.T, cron, zone string) *schedule.Spec {
	t.Helper()
	s, err := schedule.Parse(cron, zone)
	require.NoError(t, err)
	return s
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cron, zone, says string }{
		{"", "", "has 0 fields; it needs 5"},
		{"* * * *", "", "has 4 fields"},
		{"0 0 0 * * *", "", "has 6 fields"},
		{"@daily", "", "has 1 fields"},
		{"@every 5s x y z", "", `the minute "@every"`},
		{"CRON_TZ=UTC 0 0 * *", "", `the minute "CRON_TZ=UTC"`},
		{"60 * * * *", "", `the minute "60": end of range (60) above maximum (59)`},
		{"* 24 * * *", "", `the hour "24"`},
		{"* * 0 * *", "", `the day of the month "0"`},
		{"* * 32 * *", "", `the day of the month "32"`},
		{"* * L * *", "", `the day of the month "L"`},
		{"* * 15W * *", "", `the day of the month "15W"`},
		{"* * * 13 *", "", `the month "13"`},
		{"* * * foo *", "", `the month "foo"`},
		{"* * * * 8", "", `the day of the week "8"`},
		{"* * * * fri#1", "", `the day of the week "fri#1": "fri#1" is no *, value, range or step`},
		{"* * ? * *", "", `the day of the month "?"`},
		{"H * * * *", "", `the minute "H"`},
		{"*/0 * * * *", "", `the minute "*/0"`},
		{"5/ * * * *", "", `the minute "5/"`},
		{"-5 * * * *", "", `the minute "-5"`},
		{"1,, * * * *", "", `the minute "1,,"`},
		{"*-5 * * * *", "", `the minute "*-5"`},
		{"1-2-3 * * * *", "", `the minute "1-2-3"`},
		{"0 0 * * fri-mon/2", "", `the day of the week "fri-mon/2": "fri-mon/2": a range of weekdays has no step`},
		{"99999999999999999999 * * * *", "", "the minute"},
		{"0 0 30 2 *", "", "names no day that exists"},
		{"0 0 31 4,6,9,11 *", "", "names no day that exists"},
		{"0 0 * * *", "Mars/Olympus", `zone "Mars/Olympus"`},
		{"0 0 * * *", "../etc/passwd", `zone "../etc/passwd"`},
		{"0 0 * * *", "Local", "depends on the machine"},
	} {
		_, err := schedule.Parse(c.cron, c.zone)
		require.ErrorIs(t, err, schedule.ErrSpec, c.cron)
		require.ErrorContains(t, err, c.says)
	}
	_, err := schedule.Parse("0 0 * * *"+string(make([]byte, schedule.MaxCron)), "")
	require.ErrorContains(t, err, "the limit is 256")
}

func TestNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cron, zone, from string
		want             []string
	}{
		"every minute": {"* * * * *", "", "2026-03-01T10:00:00Z", []string{"2026-03-01T10:01:00Z", "2026-03-01T10:02:00Z"}},
		"a second past": {
			"* * * * *", "", "2026-03-01T10:00:01.5Z", []string{"2026-03-01T10:01:00Z"},
		},
		"never the time itself": {"0 2 * * *", "", "2026-03-01T02:00:00Z", []string{"2026-03-02T02:00:00Z"}},
		"a zone":                {"0 2 * * *", "Europe/Berlin", "2026-01-10T12:00:00Z", []string{"2026-01-11T01:00:00Z"}},
		"either day": {
			"0 0 13 * fri", "", "2026-03-01T00:00:00Z",
			[]string{"2026-03-06T00:00:00Z", "2026-03-13T00:00:00Z", "2026-03-20T00:00:00Z", "2026-03-27T00:00:00Z", "2026-04-03T00:00:00Z", "2026-04-10T00:00:00Z", "2026-04-13T00:00:00Z"},
		},
		"one day only": {"0 0 13 * *", "", "2026-03-01T00:00:00Z", []string{"2026-03-13T00:00:00Z", "2026-04-13T00:00:00Z"}},
		"both Sundays": {"0 0 * * 7", "", "2026-03-01T01:00:00Z", []string{"2026-03-08T00:00:00Z"}},
		"past the end": {"0 22-2/2 * * *", "", "2026-03-01T21:00:00Z", []string{"2026-03-01T22:00:00Z", "2026-03-02T00:00:00Z", "2026-03-02T02:00:00Z", "2026-03-02T22:00:00Z"}},
		"over the weekend": {
			"0 0 * * Fri-mon", "", "2026-03-05T00:00:00Z",
			[]string{"2026-03-06T00:00:00Z", "2026-03-07T00:00:00Z", "2026-03-08T00:00:00Z", "2026-03-09T00:00:00Z", "2026-03-13T00:00:00Z"},
		},
		"leap days": {"0 0 29 feb *", "", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		// Berlin, 2026-03-29: 02:00 becomes 03:00.
		"skipped hour fires at the jump": {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"skipped times are one":          {"*/10 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		"skipped and shown are one":      {"0 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		"every hour skips the hour":      {"30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", []string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"}},
		"skipped midnight":               {"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", []string{"2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}},
		"skipped day":                    {"0 12 30 12 *", "Pacific/Apia", "2011-12-29T12:00:00Z", []string{"2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"}},
		// Berlin, 2026-10-25: 03:00 becomes 02:00.
		"doubled hour fires in the first":  {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"asked within the second":          {"30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", []string{"2026-10-26T01:30:00Z"}},
		"chosen hours once":                {"0 1-3 * * *", "Europe/Berlin", "2026-10-24T22:30:00Z", []string{"2026-10-24T23:00:00Z", "2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z"}},
		"every hour has both":              {"0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		"every hour by its numbers, too":   {"0 0-23 * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		"half an hour twice (Lord Howe)":   {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		"half an hour less (Lord Howe)":    {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		"half hours by what passes":        {"*/30 * * * *", "Australia/Lord_Howe", "2026-04-04T14:00:00Z", []string{"2026-04-04T14:30:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z"}},
		"a zone without a change of clock": {"0 9 * * mon-fri", "Asia/Kolkata", "2026-03-06T12:00:00Z", []string{"2026-03-09T03:30:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, from := spec(t, c.cron, c.zone), at(t, c.from)
			for _, want := range c.want {
				from = s.Next(from)
				require.Equal(t, want, from.UTC().Format(time.RFC3339))
			}
		})
	}
}

func TestMissed(t *testing.T) {
	t.Parallel()
	hourly := spec(t, "0 * * * *", "")
	for name, c := range map[string]struct {
		spec              *schedule.Spec
		last, now, policy string
		limit             int
		fire              []string
		upTo              string
	}{
		"nothing yet":        {hourly, "2026-03-01T10:00:00Z", "2026-03-01T10:59:59Z", "all", 5, nil, "2026-03-01T10:59:59Z"},
		"on time":            {hourly, "2026-03-01T10:59:59Z", "2026-03-01T11:00:00Z", "one", 5, []string{"2026-03-01T11:00:00Z"}, "2026-03-01T11:00:00Z"},
		"all":                {hourly, "2026-03-01T10:00:00Z", "2026-03-01T12:30:00Z", "all", 5, []string{"2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z"}, "2026-03-01T12:30:00Z"},
		"all, bounded":       {hourly, "2026-03-01T10:00:00Z", "2026-03-01T15:30:00Z", "all", 2, []string{"2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z"}, "2026-03-01T12:00:00Z"},
		"all, just fits":     {hourly, "2026-03-01T10:00:00Z", "2026-03-01T12:30:00Z", "all", 2, []string{"2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z"}, "2026-03-01T12:30:00Z"},
		"all, no limit is 1": {hourly, "2026-03-01T10:00:00Z", "2026-03-01T15:30:00Z", "all", 0, []string{"2026-03-01T11:00:00Z"}, "2026-03-01T11:00:00Z"},
		"one":                {hourly, "2026-03-01T10:00:00Z", "2026-03-09T12:30:00Z", "one", 5, []string{"2026-03-09T12:00:00Z"}, "2026-03-09T12:30:00Z"},
		"one is the default": {hourly, "2026-03-01T10:00:00Z", "2026-03-01T12:30:00Z", "", 5, []string{"2026-03-01T12:00:00Z"}, "2026-03-01T12:30:00Z"},
		"none, too old":      {hourly, "2026-03-01T10:00:00Z", "2026-03-01T12:30:00Z", "none", 5, nil, "2026-03-01T12:30:00Z"},
		"none, a minute":     {hourly, "2026-03-01T10:00:00Z", "2026-03-01T12:01:00Z", "none", 5, []string{"2026-03-01T12:00:00Z"}, "2026-03-01T12:01:00Z"},
		"none, past it":      {hourly, "2026-03-01T10:00:00Z", "2026-03-01T12:01:01Z", "none", 5, nil, "2026-03-01T12:01:01Z"},
		"a clock gone back":  {hourly, "2026-03-01T10:00:00Z", "2026-03-01T09:00:00Z", "all", 5, nil, "2026-03-01T10:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fire, upTo := c.spec.Missed(at(t, c.last), at(t, c.now), c.policy, c.limit)
			var got []string
			for _, f := range fire {
				got = append(got, f.UTC().Format(time.RFC3339))
			}
			require.Equal(t, c.fire, got)
			require.Equal(t, c.upTo, upTo.UTC().Format(time.RFC3339))
		})
	}
}

func TestKeyIsTheTimeItself(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	when := at(t, "2026-10-25T00:30:00Z")
	require.Equal(t, "night@2026-10-25T00:30:00Z", schedule.Key("night", when.In(berlin)))
}
