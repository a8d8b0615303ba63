// Package memory is the store of journal/store in memory: the same contract as
// journal/postgres, held by the same suite, for tests and for the deterministic
// simulator.
//
// One mutex stands for the database: a commit checks every test-and-set against
// the tables, in the order of its plans, and undoes all of it when one is lost.
// What a transaction of the real store would wait for, it waits for here:
// committers hold the jobs that they loaded until Commit or Rollback, in the
// order in which they came, and the rows that they loaded are locked against
// workers and the sweeper. The lock of a mailbox is held for no longer than a
// call, so that the mutex is enough for it.
//
// Nothing here does I/O or sleeps. Waiting happens on channels that are made
// where they are waited for, so that a store that is opened in a bubble of
// testing/synctest lives in it whole. All iteration is sorted: the same calls
// give the same results. Config.Fault makes calls fail before they did anything,
// or after they did it.
package memory
