// Package backoff says how long to wait before something that failed is tried again.
//
//	time.Sleep(backoff.Delay(failures, 50*time.Millisecond, 5*time.Second, rand.N[time.Duration]))
//
// It has no clock and no randomness; both are the caller's. The retry policies of
// activities are part of the protocol and are in package collation.
package backoff
