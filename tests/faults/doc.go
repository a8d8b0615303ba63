// Package faults drives real worker processes, with real Postgres and NATS,
// through the cells of 6.2 × 6.3: a process is brought to a fault point and held
// there, the fault is done to it or to its servers, it goes on or another takes
// its place, every job must end (I11), and then the invariants of 6.1 are looked
// at in the database and by the verifier.
//
// `go test -race ./tests/faults` runs a sample: F1 at half of the points, and some cells that a
// seed chooses, as the mode. `make faults` runs all cells and prints the table.
package faults
