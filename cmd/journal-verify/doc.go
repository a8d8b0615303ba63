// Command journal-verify proves or refutes that journals keep their laws (2.5), in a database,
// with read-only rights, or in exported files. It replays the entries with package replay only,
// and never imports the engine that it checks.
//
//	journal-verify [--postgres DSN | --dev DIR] [--space S] [--job KEY-or-ID …]
//	journal-verify FILE… (- reads standard input)
//
// Exit codes: 0 everything that the input can prove is proved, 1 a law is violated, 2 something
// could not be read or checked. See docs/verify.md.
package main
