// Package dev runs what Quipu needs on one machine without configuration: a NATS server in this
// process, and a private Postgres from the local binaries. `worker dev` and the tests with real
// servers use it.
//
// StartNATS and StartPostgres each own one directory, survive restarts on it, and refuse a second
// owner; Lock protects the directory above in the same way. Both servers have production
// settings: JetStream on files, Postgres with fsync, full_page_writes, synchronous_commit and
// data checksums. StartProcess runs any program beside them.
//
// The package is for Unix; processes die with their parent on Linux only.
package dev
