package main

import (
	"time"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// clock is the format of a time of day, and dated that of a time.
const (
	clock = "15:04:05.000"
	dated = "2006-01-02 " + clock
)

// local formats a time for people; "" for none.
func local(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(dated)
}

// short formats a duration with about three digits.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// took is the time from start to end; "" while it lasts.
func took(from, to time.Time) string {
	if to.IsZero() {
		return ""
	}
	return short(to.Sub(from))
}

// seconds is a duration in tenths of a second; "" for none.
func seconds(s float64) string {
	if s <= 0 {
		return ""
	}
	return (time.Duration(s*1000) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// micros is a duration of a trace.
func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// earlier reads a time of the past; the zero time for none.
func earlier(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if ago, e := time.ParseDuration(text); err != nil && e == nil && ago >= 0 {
		at, err = now.Add(-ago), nil
	}
	if err != nil {
		return at, cli.Exitf(cli.CodeUsage, "%s %.40q: use a time such as 2026-11-24T18:00:00Z, or how long ago, such as 24h", flag, text)
	}
	return at, nil
}
