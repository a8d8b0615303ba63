// Package backoff says how long to wait before something that failed is tried again.
//
//	time.Sleep(backoff.Delay(failures, 50*time.Millisecond, 5*time.Second, rand.N[time.Duration]))
//
// It knows no clock and no chance: both are the caller's. The retry policies of
// activities are not here: what they come to is a part of the protocol, and stands in
// package collation.
package backoff
