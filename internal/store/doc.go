// Package store defines the ports between the runtime and the database, and their failure
// contract. journal/postgres and internal/memstore implement them; the suite internal/testkit/journaltest
// holds both to the contract.
//
// Each kind of caller has a port: Engine (decide and commit), Worker (leases and effects),
// Sessions (liveness of processes), Client (start and read), Operator (flows and dead letters),
// Reader (verification), and, of a database only, Lists (what people ask of all jobs).
//
// The failure contract holds for every method that writes. nil means that the commit happened.
// The errors of this package mean that nothing was committed, except ErrUnknown: the outcome
// could not be found out, and the call may be repeated. Every write is guarded by a test-and-set
// or a unique key, so a repetition finds its own work or does it (J4, C8).
package store
