// Package memstore implements internal/store in memory, for the deterministic simulator, quiputest, and tests of what
// stands on a store. tests/differential holds it to journal/postgres, call by call. It has what they need: no lists and
// counts (store.Lists), no repairs, no removal of history.
//
// One mutex stands for the database. A commit checks every test-and-set against the tables, in
// the order of its plans, and undoes everything if one loses. Calls wait where a transaction of
// the real store would wait: a committer holds the jobs that it loaded until Commit or Rollback,
// others get them in the order in which they came, and the rows that it loaded are locked against
// workers and the sweeper. A mailbox is locked only during a call, so the mutex is its lock.
//
// The store does no I/O and never sleeps. It waits only for locks, on a condition, so it works
// inside a testing/synctest bubble. All iteration is sorted: the same calls give the same results.
// Config.Fault makes calls fail before or after they have done their work.
package memstore
