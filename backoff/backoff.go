package backoff

import "time"

// Delay is the wait before an attempt that has doublings attempts behind it beyond the first:
// unit, doubled as often, and most at most. Both are more than 0.
//
// jitter draws from 0 to below its argument, which is more than 0, as
// rand.N[time.Duration] does. The upper half of the wait is drawn with it, so that
// many who failed at the same moment do not come back in step. Without one, nil, the
// wait is exact.
func Delay(doublings int, unit, most time.Duration, jitter func(below time.Duration) time.Duration) time.Duration {
	d := most
	if n := max(doublings, 0); unit <= most>>n { // so unit<<n is not over the end of its type
		d = unit << n
	}
	if jitter == nil {
		return d
	}
	return d/2 + jitter(d-d/2+1)
}
