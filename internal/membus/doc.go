// Package membus is a transport.Bus in memory, for the simulator and for tests. With a
// zero Config it is a well-behaved work queue. With probabilities it loses, duplicates
// and reorders messages, as JetStream may at its worst (4.1, F10, F12, F13).
//
// Every decision is drawn from the seed, the message's id and the number of earlier
// decisions of that kind for it, not from a shared random stream. So a seed means the
// same faults for the same messages however goroutines interleave. Time comes from
// package time and there is no I/O, so the bus runs inside a testing/synctest bubble.
package membus
