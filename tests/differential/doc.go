// Package differential holds the two stores to each other: Postgres and memory get the
// same calls, and must give the same answers, the same rows and the same errors.
//
// Two stores are driven as one. What is decided is decided once, on what both have
// loaded, and both commit the same plans. rapid draws flows and sequences of calls: the
// plans of collation over those flows, with suspensions and wakes of durable functions,
// children, signals and interrupts; the calls of workers, sweepers and operators; and
// calls that are stale, repeated, or commit falsified plans. What is loaded, the answers and
// the kinds of the errors of every call are compared, and every row of every table after each
// that writes. Both stores have the same clock, which only the test moves, so that times are
// compared as they are.
//
// Not drawn, because the suite of the stores (journal/journaltest) holds both to it: what
// clients and operators read, what is late, and the renewals of sessions. Nor are calls at
// the same time, transactions of the caller's own, lost connections and unknown outcomes,
// small limits of Expire and Late (which rows go first is open), results over their limit,
// counters at their ceiling, falsified inceptions; hardly ever what comes later because
// another message of its instance goes first.
//
// QUIPU_DIFFERENTIAL is the number of sequences instead of a few. A failure prints
// the smallest sequence that was found, and the arguments that draw it again.
package differential
