// Package postgres implements the ports of package store on PostgreSQL: one
// schema per space, holding journal, ledgers, dispatch rows, effects and dead
// dead letters, so that everything one message changes commits in one transaction.
//
// The way in is Open. A Store keeps a pool for clients, workers and sweepers;
// each Committer has a connection of its own, whose Load and Commit are one
// pipelined round trip each (J6).
//
// SQL stands in sql/*.sql, one topic per file, each statement below its name and
// its contract, taking arrays (statements.go). The columns of a table stand in one
// list, which its statements and the code that writes and reads them share
// (columns.go). Statements are prepared once per connection under their name. A
// test-and-set compares inside its statement and raises
// an error when it lost (C3): no trip is spent on looking at row counts. Plans
// of one batch are merged in Go first (merge.go), so that each row is written
// once.
//
// Signals meet their waits under an advisory lock of their topic and key, taken
// by whoever registers a wait (in the commit of its plan) and by whoever
// delivers (in the Load of the mailbox; signals.go, waits.go, J3). StartTx and
// SignalTx join a caller's own transaction (tx.go, E17). Expire removes closed jobs
// and leaves their tombstones (expire.go, J7).
//
// The row of a request is the lock of its effect chain (effects.go, J8).
//
// Failures are classified in one place (errors.go) into the sentinel errors of
// package store. A commit whose outcome is unknown is resolved through its
// batch marker (resolve.go, J4).
package postgres
