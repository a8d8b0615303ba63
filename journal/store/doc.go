// Package store states the ports between the runtime and the database, and
// their failure contract. journal/postgres and journal/memory implement them;
// journal/journaltest holds both to the contract.
//
// There are small ports, one for each kind of caller: Engine (decide and
// commit), Worker (leases and effects), Sessions (that a process lives), Client (start and read), Operator
// (flows and dead letters), and Reader for verification.
//
// The failure contract, for every method that writes: it returns nil only
// after the commit; an error of the kinds below only when nothing was
// committed; ErrUnknown when it could not be found out, in which case the call
// may be repeated: everything written is guarded by a test-and-set or a unique
// key, so that a repetition finds its own work or does it (J4, C8).
package store
