// Package replaytest makes journals for tests: honest ones, by driving the
// protocol through random trees of workers under random interleavings, and
// lies, by changing honest ones and computing their hashes anew. NewFunction builds
// the journal of one durable function, step by step.
package replaytest
