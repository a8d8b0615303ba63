// Package differential holds the two stores to each other: Postgres and memory
// get the same calls, and must give the same rows and the same errors.
//
// rapid draws flows and sequences of calls of every port of journal/store: the
// plans of collation over those flows, with suspensions and wakes of durable
// functions, children, signals and interrupts; the calls of workers, sweepers and
// operators; and calls that are stale, repeated, malformed or against the laws.
// After every call the answers and the kinds of the errors are compared, at the
// end all that can be observed: jobs, entries byte by byte, tables, letters,
// flows. Both stores have the same clock, which only the test moves, so that times
// are compared as they are.
//
// QUIPU_DIFFERENTIAL is the number of sequences; without it the test is skipped. A failure prints the smallest
// sequence that was found, and the arguments that draw it again.
package differential
