// Package differential holds the double of the store to the store: Postgres and memory get the same
// calls, and must give the same answers, the same tables and the same errors.
//
// Two stores are driven as one. What is decided is decided once, on what both have loaded, and both
// commit the same plans. rapid draws flows and sequences of calls: the plans of collation over
// those flows, with suspensions and wakes of durable functions, children, signals, interrupts,
// effects, forks, resumed jobs and operators; repeated, outdated, made unlawful, and left half
// done; decisions on what was read before (W6); leases, claims and sessions, also of processes that
// are not heard of any more; bodies of Tx effects, which start and signal; what clients ask; flows
// and their schedules. What is loaded, and the kinds of the errors, are compared with every call;
// what the stores' readers give of each job that was written, after every step. Both stores have
// the same clock, which only the test moves, so that times are compared as they are.
//
// So every call that the simulator and quiputest make of memory is drawn here. Not drawn are calls at the same time,
// lost connections and unknown outcomes, small limits of lists and of retention, and what only Postgres does: repairs,
// the removal of history, bounds of dead letters, lists and counts. The tests of journal/postgres have those.
//
// QUIPU_DIFFERENTIAL is the number of sequences instead of a few. A failure prints the smallest
// sequence that was found, and the arguments that draw it again.
package differential
