package explain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/collation"
)

// span is a length of time in one or two units; none is shorter than nothing.
func span(d time.Duration) string {
	d = max(d, 0)
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

// in is how long a time is away, with the time itself where that is far.
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

// compareDAD orders addresses by their passes: a later pass comes later.
func compareDAD(a, b collation.DAD) int {
	x, y := runs(a), runs(b)
	for len(x) > 0 && len(y) > 0 {
		if c := cmp.Compare(x[0].value, y[0].value); c != 0 {
			return c
		}
		n := min(x[0].count, y[0].count)
		x, y = less(x, n), less(y, n)
	}
	return cmp.Compare(len(x), len(y))
}

// run is a segment of an address and how often it comes (1.9).
type run struct{ value, count int }

func runs(d collation.DAD) (out []run) {
	for part := range strings.SplitSeq(strings.TrimPrefix(string(d), ","), ",") {
		value, count, repeated := strings.Cut(part, "^")
		r := run{count: 1}
		r.value, _ = strconv.Atoi(value)
		if repeated {
			r.count, _ = strconv.Atoi(count)
		}
		out = append(out, r)
	}
	return out
}

// less is the runs without their first n segments, which are of one run.
func less(r []run, n int) []run {
	if r[0].count -= n; r[0].count > 0 {
		return r
	}
	return r[1:]
}
