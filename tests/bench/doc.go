// Command bench measures the engine beside two floors, in one run: W1 (jobs of
// one step), W10, W100 (one job, its steps one after another), W10000, and a
// backlog of 100 000 jobs; then the other activities: a fan-out by each, signals
// to waiting jobs, cycles, trees of awaits; and jobs of ten Tx effects beside jobs
// of one that do the same outside of them. The handler does nothing. One process with an
// embedded NATS server on files and a private Postgres with fsync=on and
// synchronous_commit=on.
//
// Floor (a) writes the same rows with one transaction per step on 32
// connections; floor (b) writes them in batches of 100 without any protocol; floor (c) is floor (a) on one
// connection, for what one step waits at least.
// Absolute figures depend on the machine; the ratios are what counts.
package main
