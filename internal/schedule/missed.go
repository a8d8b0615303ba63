package schedule

import "time"

// The policies for times that passed while no process looked.
const (
	CatchUpNone = "none" // only times that are at most Grace old
	CatchUpOne  = "one"  // the latest of them; the default
	CatchUpAll  = "all"  // each of them
)

// Grace is how old a time may be without counting as missed.
const Grace = time.Minute

// Missed returns the times after last, up to now, that fire by the policy ("" is
// CatchUpOne): at most limit (at least 1), the oldest first. Times up to upTo are dealt
// with: the caller starts the jobs, stores upTo, and asks again from there. If upTo is
// before now there are more.
func (s *Spec) Missed(last, now time.Time, policy string, limit int) (fire []time.Time, upTo time.Time) {
	if !last.Before(now) {
		return nil, last
	}
	switch policy {
	case CatchUpAll:
	case CatchUpNone:
		if oldest := now.Add(-Grace - 1); last.Before(oldest) {
			last = oldest
		}
	default:
		if at := s.latest(last, now); !at.IsZero() {
			fire = []time.Time{at}
		}
		return fire, now
	}
	for {
		at := s.Next(last)
		if at.IsZero() || at.After(now) {
			return fire, now
		}
		if len(fire) >= max(limit, 1) {
			return fire, last
		}
		fire, last = append(fire, at), at
	}
}

// latest is the last time after from, up to to; zero for none. Times are at least a
// minute apart, so an interval that is halved down to a minute contains only one.
func (s *Spec) latest(from, to time.Time) time.Time {
	hit := func(after time.Time) (time.Time, bool) {
		at := s.Next(after)
		return at, !at.IsZero() && !at.After(to)
	}
	at, ok := hit(from)
	if !ok {
		return time.Time{}
	}
	for top := to; top.Sub(from) > time.Minute; {
		middle := from.Add(top.Sub(from) / 2)
		if later, ok := hit(middle); ok {
			from, at = middle, later
		} else {
			top = middle
		}
	}
	return at
}
