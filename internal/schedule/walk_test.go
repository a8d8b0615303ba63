package schedule_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/internal/schedule"
)

// drawn are fields as sets, with their text, for comparison with a walk through the
// minutes.
type drawn struct {
	text string
	sets [5]map[int]bool // nil for *
}

func draw(t *rapid.T) drawn {
	var d drawn
	low, high := []int{0, 0, 1, 1, 0}, []int{59, 23, 31, 12, 6}
	texts := make([]string, 5)
	for i := range texts {
		texts[i] = "*"
		if rapid.IntRange(0, 2).Draw(t, "star") == 0 && i != 0 {
			continue
		}
		d.sets[i] = map[int]bool{}
		var parts []string
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			from := rapid.IntRange(low[i], high[i]).Draw(t, "from")
			to := rapid.IntRange(from, high[i]).Draw(t, "to")
			part, step := strconv.Itoa(from)+"-"+strconv.Itoa(to), 1
			if i < 4 && to > from+1 {
				step = rapid.IntRange(1, to-from).Draw(t, "step")
				part += "/" + strconv.Itoa(step)
			}
			for v := from; v <= to; v += step {
				d.sets[i][v] = true
			}
			parts = append(parts, part)
		}
		texts[i] = strings.Join(parts, ",")
	}
	d.text = strings.Join(texts, " ")
	return d
}

func (d *drawn) matches(clock time.Time) bool {
	in := func(i, v int) bool { return d.sets[i] == nil || d.sets[i][v] }
	day := in(2, clock.Day()) && in(4, int(clock.Weekday()))
	if d.sets[2] != nil && d.sets[4] != nil {
		day = d.sets[2][clock.Day()] || d.sets[4][int(clock.Weekday())]
	}
	return day && in(0, clock.Minute()) && in(1, clock.Hour()) && in(3, int(clock.Month()))
}

func (d *drawn) everyHour() bool { return d.sets[1] == nil || len(d.sets[1]) == 24 }

// walk goes through the minutes from one time to another and applies the rule in doc.go
// to each, literally.
func (d *drawn) walk(zone *time.Location, from, to time.Time) (fires []string) {
	shown := clockOf(from.Add(-48*time.Hour), zone)
	for m := from.Add(-48 * time.Hour); !m.After(to); m = m.Add(time.Minute) {
		clock := clockOf(m, zone)
		hit := d.everyHour() && d.matches(clock)
		if !d.everyHour() {
			for c := shown.Add(time.Minute); !c.After(clock); c = c.Add(time.Minute) {
				hit = hit || d.matches(c)
			}
		}
		if clock.After(shown) {
			shown = clock
		}
		if hit && m.After(from) {
			fires = append(fires, m.UTC().Format(time.RFC3339))
		}
	}
	return fires
}

// clockOf is the clock time of the zone, written as a time in UTC.
func clockOf(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
}

var turns = []struct{ zone, around string }{
	{"Europe/Berlin", "2026-03-29T01:00:00Z"},
	{"Europe/Berlin", "2026-10-25T01:00:00Z"},
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z"},
	{"America/Sao_Paulo", "2018-02-18T02:00:00Z"},
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},
	{"Africa/Casablanca", "2026-02-15T02:00:00Z"},
	{"UTC", "2028-02-29T00:00:00Z"},
}

// zones have shifts of half hours and quarters, changes of the date line, of the year's half, and none.
var zones = []string{
	"Africa/Casablanca", "Africa/Cairo", "Africa/El_Aaiun", "America/Asuncion", "America/Caracas", "America/Havana", "America/New_York",
	"America/Nuuk", "America/Santiago", "America/Sao_Paulo", "America/St_Johns", "Antarctica/Troll", "Asia/Beirut", "Asia/Gaza",
	"Asia/Kathmandu", "Asia/Pyongyang", "Asia/Tehran", "Atlantic/Azores", "Australia/Eucla", "Australia/Lord_Howe", "Europe/Berlin",
	"Europe/Dublin", "Europe/Istanbul", "Pacific/Apia", "Pacific/Chatham", "Pacific/Fakaofo", "Pacific/Kwajalein", "UTC",
}

// drawTurn draws a change of a zone's clock.
func drawTurn(t *rapid.T) (zone, around string) {
	if rapid.Bool().Draw(t, "known") {
		turn := rapid.SampledFrom(turns).Draw(t, "turn")
		return turn.zone, turn.around
	}
	zone = rapid.SampledFrom(zones).Draw(t, "zone")
	loc, err := time.LoadLocation(zone)
	require.NoError(t, err)
	at := time.Unix(rapid.Int64Range(631_152_000, 2_208_988_800).Draw(t, "from 1990 to 2040"), 0)
	if _, end := at.In(loc).ZoneBounds(); !end.IsZero() {
		at = end
	}
	return zone, at.Truncate(time.Minute).UTC().Format(time.RFC3339)
}

func TestNextIsWhatTheRuleSaysMinuteByMinute(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		in, turn := drawTurn(t)
		s, err := schedule.Parse(d.text, in)
		if err != nil {
			t.Skip(err)
		}
		zone, err := time.LoadLocation(in)
		require.NoError(t, err)
		around, err := time.Parse(time.RFC3339, turn)
		require.NoError(t, err)
		from := around.Add(-time.Duration(rapid.IntRange(0, 2880).Draw(t, "before")) * time.Minute)
		to := around.Add(48 * time.Hour)
		var got []string
		for m := s.Next(from); !m.IsZero() && !m.After(to); m = s.Next(m) {
			got = append(got, m.UTC().Format(time.RFC3339))
		}
		require.Equal(t, d.walk(zone, from, to), got, "%s %s", d.text, in)
	})
}

// The latest time that halving finds is the last of all times.
func TestOneIsTheLastOfAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d, turn := draw(t), rapid.SampledFrom(turns).Draw(t, "turn")
		s, err := schedule.Parse(d.text, turn.zone)
		if err != nil {
			t.Skip(err)
		}
		last, err := time.Parse(time.RFC3339, turn.around)
		require.NoError(t, err)
		now := last.Add(time.Duration(rapid.Int64Range(1, int64(96*time.Hour)).Draw(t, "gap")))
		last = last.Add(-time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "before")))
		one, upTo := s.Missed(last, now, schedule.CatchUpOne, 1)
		require.Equal(t, now, upTo)
		all, _ := s.Missed(last, now, schedule.CatchUpAll, 10_000)
		require.Equal(t, all[max(0, len(all)-1):], one[:min(len(one), len(all))])
		require.Equal(t, len(all) > 0, len(one) == 1)
	})
}
