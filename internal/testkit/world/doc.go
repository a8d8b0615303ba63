// Package world gives a test a world: a space in a database of its own, a NATS server, runtimes that
// work for it in this process or in others, the waits of a test, and the proof of all jobs at its end.
//
// A database is copied from one that was migrated once for the test binary. The test's end closes and
// drops all.
package world
