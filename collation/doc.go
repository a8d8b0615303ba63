// Package collation is the protocol: ledgers and their digit laws, addresses, identifiers, and
// Step, the pure function that turns one message and the state it meets into a Plan.
//
// A Plan is everything that the message changes, as one value. It is committed whole, then its
// rows are published, then its message is acked. Nothing else is consulted to find out what was
// done (C2, C5, C9). Under Mode.Stepwise the same plan is cut at its marks and committed in
// pieces (C11). A redelivered message finds its own digits and goes on from there, so recovery
// has no code of its own.
//
// The package uses no clock, randomness, network or SQL. The time comes with the State, and
// identifiers are derived (C8).
package collation
