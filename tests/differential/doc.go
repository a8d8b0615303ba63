// Package differential holds the two stores to each other: Postgres and memory get the
// same loads and the same commits, and must give the same answers, the same tables and the
// same errors.
//
// Two stores are driven as one. What is decided is decided once, on what both have
// loaded, and both commit the same plans. rapid draws flows and sequences of decisions: the
// plans of collation over those flows, with suspensions and wakes of durable functions,
// children, signals, interrupts, effects and operators; repeated, outdated, and left
// half done. What is loaded, and the kinds of the errors, are compared with every call; what
// the stores' readers give of each job that was written, after every step. Both stores have
// the same clock, which only the test moves, so that times are compared as they are.
//
// Not drawn, because the suite of the stores (internal/testkit/journaltest) holds both to it: plans
// against the laws, leases and claims, the ends of sessions, bodies of Tx effects, retention of
// small limits, what clients and operators list. Nor are calls at the same time, transactions
// of the caller's own, lost connections and unknown outcomes, results over their limit, counters
// at their ceiling; hardly ever what comes later because another message of its instance goes
// first.
//
// QUIPU_DIFFERENTIAL is the number of sequences instead of a few. A failure prints
// the smallest sequence that was found, and the arguments that draw it again.
package differential
