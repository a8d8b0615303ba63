package backoff

import "time"

// Delay is the wait before the next attempt: unit, doubled doublings times, and at most
// most. unit and most must be more than 0.
//
// jitter draws from 0 to below its argument, which is more than 0, as
// rand.N[time.Duration] does. It draws the upper half of the wait, so that callers that
// failed at the same moment do not come back in step. With nil the wait is exact.
func Delay(doublings int, unit, most time.Duration, jitter func(below time.Duration) time.Duration) time.Duration {
	d := most
	if n := max(doublings, 0); unit <= most>>n { // so unit<<n does not overflow
		d = unit << n
	}
	if jitter == nil {
		return d
	}
	return d/2 + jitter(d-d/2+1)
}
