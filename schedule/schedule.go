package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

// MaxCron bounds the text of the cron fields, bytes.
const MaxCron = 256

// horizon is for how many years a time is looked for. The 29th of February comes
// after 8 years at most (1896, 1904).
const horizon = 10

// everyHour has the bit of each hour.
const everyHour = 1<<24 - 1

// ErrSpec says that cron fields or a zone cannot be read, or that they name no
// time at all. Its text says which field, and why.
var ErrSpec = errors.New("refused schedule")

// Spec is a readable schedule. It is immutable and safe for concurrent use.
type Spec struct {
	zone   *time.Location
	fields *cron.SpecSchedule
}

// fieldNames are the fields in their order.
var fieldNames = []string{"minute", "hour", "day of the month", "month", "day of the week"}

// weekday is the index of its field. The library counts 0 and 7 as two days when
// it steps over the end of the week.
const weekday = 4

// Parse reads five cron fields, and the zone in which they are meant ("" is
// UTC). The error is ErrSpec.
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
	parser := cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom).WithMaxSearchYears(horizon)
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

// item is one member of a field's list, as doc.go has it: the library is more
// lenient (it reads *-5, and 1,,2).
var item = regexp.MustCompile(`^(\*|([0-9]+|[a-z]{3})(-([0-9]+|[a-z]{3}))?)(/[0-9]+)?$`)

// checkField parses one field among stars, so that a fault is known to be its
// own.
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

// Next is the first time after the given one, zero if there is none within ten
// years. It is in the zone of the schedule.
func (s *Spec) Next(after time.Time) time.Time {
	seg := segmentOf(s.zone, after)
	if s.fields.Hour&everyHour == everyHour {
		return s.nextPassing(after, seg)
	}
	// What was shown so far: also what clocks that were turned back show again.
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

// nextPassing is Next by the time that passes: each stretch between two changes
// of the clock is looked through by itself.
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

// segment is a stretch of time in which the zone's clock is not changed. What
// the clock shows is written as a time in UTC.
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

// Key is the key of the job that a flow's schedule starts for the time at: the
// same time never starts two jobs, whoever starts it.
func Key(flow string, at time.Time) string { return flow + "@" + at.UTC().Format(time.RFC3339) }
