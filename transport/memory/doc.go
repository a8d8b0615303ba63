// Package memory is a transport.Bus in memory, for the simulator and for tests:
// with a zero Config a well-behaved work queue, with probabilities a bus that
// loses, duplicates and reorders as JetStream may at its worst (4.1, F10, F12,
// F13).
//
// Every decision is drawn from the seed, the message's id and how often that
// decision was taken for it, and not from a shared stream of random numbers; so
// a seed means the same faults for the same messages however goroutines
// interleave. Time is the time package's and there is no I/O, so it runs inside
// a testing/synctest bubble.
package memory
