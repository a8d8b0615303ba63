// Package journaltest drives a store of journals as an engine does, for tests: each operation is one transaction, which
// loads, lets package collation decide, and commits.
package journaltest
