// Package e2e holds the tests with real servers, real processes and real
// kills. Each test has a space of its own; after each, every job has ended,
// journal-verify proves the journal, and whatever was called outside applied
// each key once (spec 6.1).
package e2e
