// Command journal-verify proves or refutes that journals keep their laws (spec
// 2.5), on a database with read-only rights or on exported files. It replays
// the entries with package replay alone and never imports the engine whose work
// it judges.
//
//	journal-verify [--postgres DSN | --dev DIR] [--space S] [--job KEY-or-ID …]
//	journal-verify FILE… (- reads standard input)
//
// Exit codes: 0 all that the input can prove is proved, 1 a law is violated, 2
// something could not be read or checked. See docs/verify.md.
package main
