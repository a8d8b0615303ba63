// Package postgres implements the ports of package store on PostgreSQL. A space is one schema
// with the journal, ledgers, dispatch rows, effects and dead letters, so everything that one
// message changes commits in one transaction.
//
// Start with Open. A Store has a pool for clients, workers and sweepers; each Committer has its
// own connection, and its Load and Commit take one pipelined round trip each (J6).
//
// The SQL is in sql/*.sql, one topic per file, each statement below its name and contract
// (statements.go). Statements take arrays and are prepared once per connection. The columns of a
// table are in one list, which statements and Go code share (columns.go). A test-and-set compares
// inside its statement and raises an error if it lost (C3), so nobody looks at row counts. The
// plans of one batch are first merged in Go (merge.go), so that each row is written once.
//
// An advisory lock of topic and key keeps a signal and a wait from missing each other (J3). The
// commit that registers a wait takes it, and so does the Load of the mailbox that delivers
// (signals.go, waits.go). StartTx and SignalTx write in a caller's transaction (tx.go, E17).
// Expire removes closed jobs and leaves tombstones (expire.go, J7).
//
// The row of a request is the lock of its effect chain (effects.go, J8).
//
// Failures are classified in one place (errors.go) as errors of package store. A commit of
// unknown outcome is resolved by its batch marker (resolve.go, J4).
package postgres
