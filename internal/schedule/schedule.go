package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

// MaxCron bounds the text of the cron fields, in bytes.
const MaxCron = 256

// horizon bounds the search for a time, in years. The longest gap between two 29ths of
// February is 8 years (1896, 1904).
const horizon = 10

// everyHour has the bit of each hour.
const everyHour = 1<<24 - 1

// ErrSpec says that cron fields or a zone cannot be read, or that they match no time. Its
// text names the field and the reason.
var ErrSpec = errors.New("refused schedule")

// Spec is a parsed schedule. It is immutable and safe for concurrent use.
type Spec struct {
	zone   *time.Location
	fields *cron.SpecSchedule
}

var fieldNames = []string{"minute", "hour", "day of the month", "month", "day of the week"}

// weekday is the index of the day-of-week field. The library counts 0 and 7 as two days
// when a step wraps around the week.
const weekday = 4

// Parse reads five cron fields and their zone ("" is UTC). The error wraps ErrSpec.
func Parse(text, zone string) (*Spec, error) {
	if len(text) > MaxCron {
		return nil, fmt.Errorf("%w: cron has %d bytes, the limit is %d", ErrSpec, len(text), MaxCron)
	}
	fields := strings.Fields(text)
	if len(fields) != len(fieldNames) {
		return nil, fmt.Errorf("%w: cron %q has %d fields; it needs %d: %s", ErrSpec, text, len(fields), len(fieldNames), strings.Join(fieldNames, ", "))
	}
	if zone == "Local" {
		return nil, fmt.Errorf("%w: zone %q depends on the machine; give an IANA name such as Europe/Berlin", ErrSpec, zone)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("%w: zone %q: give an IANA name such as Europe/Berlin, or UTC: %w", ErrSpec, zone, err)
	}
	parser := cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom).
		WithMaxSearchYears(horizon)
	for i, field := range fields {
		if err := checkField(parser, i, field); err != nil {
			return nil, fmt.Errorf("%w: cron %q: the %s %q: %w", ErrSpec, text, fieldNames[i], field, err)
		}
	}
	parsed, err := parser.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("%w: cron %q: %w", ErrSpec, text, err)
	}
	s := &Spec{zone: loc, fields: parsed.(*cron.SpecSchedule)}
	if s.fields.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%w: cron %q names no day that exists", ErrSpec, text)
	}
	return s, nil
}

// item is one member of a field's list, as doc.go describes it. The library is more
// lenient: it accepts *-5, and 1,,2.
var item = regexp.MustCompile(`^(\*|([0-9]+|[a-z]{3})(-([0-9]+|[a-z]{3}))?)(/[0-9]+)?$`)

// checkField parses one field with * in all others, so that an error is this field's.
func checkField(p cron.Parser, at int, field string) error {
	for part := range strings.SplitSeq(strings.ToLower(field), ",") {
		if !item.MatchString(part) {
			return fmt.Errorf("%q is no *, value, range or step", part)
		}
		if at == weekday && strings.Contains(part, "-") && strings.Contains(part, "/") {
			return fmt.Errorf("%q: a range of weekdays has no step: list the days", part)
		}
	}
	fields := []string{"*", "*", "*", "*", "*"}
	fields[at] = field
	_, err := p.Parse(strings.Join(fields, " "))
	return err
}

// Next is the first time after the given one, in the schedule's zone; zero if there is
// none within ten years.
func (s *Spec) Next(after time.Time) time.Time {
	seg := segmentOf(s.zone, after)
	if s.fields.Hour&everyHour == everyHour {
		return s.nextPassing(after, seg)
	}
	// shown is the latest clock time so far. Clocks that were turned back show it again.
	shown := seg.clock(after)
	if seg.start.After(dawn) {
		if end := seg.before().endClock().Add(-1); end.After(shown) {
			shown = end
		}
	}
	at := s.fields.Next(shown)
	if at.IsZero() {
		return at
	}
	for !at.Before(seg.endClock()) {
		seg = seg.after()
	}
	t := at.Add(-seg.offset)
	if t.Before(seg.start) {
		t = seg.start // the clock skipped it
	}
	return t.In(s.zone)
}

// nextPassing is Next by elapsed time. It searches each interval between two clock
// changes separately.
func (s *Spec) nextPassing(after time.Time, seg segment) time.Time {
	for limit := after.AddDate(horizon, 0, 0); after.Before(limit); {
		at := s.fields.Next(seg.clock(after))
		if at.IsZero() {
			return at
		}
		if at.Before(seg.endClock()) {
			return at.Add(-seg.offset).In(s.zone)
		}
		after = seg.end.Add(-1)
		seg = seg.after()
	}
	return time.Time{}
}

// segment is an interval without a change of the zone's clock. Clock times are written as
// times in UTC.
type segment struct {
	zone       *time.Location
	start, end time.Time // end excluded
	offset     time.Duration
}

// Bounds of the first and the last segment of a zone.
var (
	dawn = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	dusk = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
)

func segmentOf(zone *time.Location, at time.Time) segment {
	local := at.In(zone)
	_, offset := local.Zone()
	g := segment{zone: zone, offset: time.Duration(offset) * time.Second}
	if g.start, g.end = local.ZoneBounds(); g.start.IsZero() {
		g.start = dawn
	}
	if g.end.IsZero() {
		g.end = dusk
	}
	return g
}

func (g segment) clock(at time.Time) time.Time { return at.UTC().Add(g.offset) }
func (g segment) endClock() time.Time          { return g.clock(g.end) }
func (g segment) after() segment               { return segmentOf(g.zone, g.end) }
func (g segment) before() segment              { return segmentOf(g.zone, g.start.Add(-1)) }

// Key is the key of the job that a flow's schedule starts for the time at, so that no two
// processes start two jobs for one time.
func Key(flow string, at time.Time) string { return flow + "@" + at.UTC().Format(time.RFC3339) }
