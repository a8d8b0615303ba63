package explain

import (
	"fmt"
	"strconv"
	"time"

	"github.com/quipu-journal/quipu/collation"
)

// span is a duration in one or two units; a negative one is 0.
func span(d time.Duration) string {
	if d = max(d, 0); d < time.Second {
		d = d.Round(time.Millisecond)
	}
	two := func(big, small time.Duration, a, b string) string {
		n, m := d/big, d%big/small
		if m == 0 {
			return fmt.Sprintf("%d %s", n, a)
		}
		return fmt.Sprintf("%d %s %d %s", n, a, m, b)
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return two(time.Minute, time.Second, "min", "s")
	case d < 24*time.Hour:
		return two(time.Hour, time.Minute, "h", "min")
	}
	return two(24*time.Hour, time.Hour, "d", "h")
}

func micros(d collation.Micros) time.Duration { return time.Duration(d) * time.Microsecond }

// ago is how long ago a time was.
func (e *explainer) ago(t collation.Micros) string { return span(micros(e.Now-t)) + " ago" }

// in says how far away a time is, with the time itself if that is a minute or more.
func (e *explainer) in(t collation.Micros) string {
	d := micros(t - e.Now)
	switch {
	case d <= 0:
		return "now"
	case d < time.Minute:
		return "in " + span(d)
	}
	return fmt.Sprintf("in %s, at %s", span(d), e.clock(t))
}

func (e *explainer) clock(t collation.Micros) string {
	zone := e.Zone
	if zone == nil {
		zone = time.UTC
	}
	return time.UnixMicro(int64(t)).In(zone).Format("2006-01-02 15:04:05 MST")
}

// counted is a number of things.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
