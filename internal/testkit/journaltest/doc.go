// Package journaltest is the suite that every implementation of internal/store must pass. It
// drives a store as the engine does, with plans of collation.Incept and collation.Step over small
// flows. Handmade plans test a single part of a plan, or that a store refuses what no lawful
// engine asks for.
//
// The suite moves the clock of the store, so nothing waits for time. store.Lists is tested where a
// store has it.
//
// Each subtest names the rule that it tests and runs in parallel on its own store. At its end it
// audits its jobs: whole chains, right hashes, tables that equal what the entries say.
package journaltest
