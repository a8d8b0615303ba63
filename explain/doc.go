// Package explain says in words what a job waits for, and draws its graph. It
// reads what anybody can read: the ledgers and the open rows of one job
// (store.JobView), its flow, and the sessions of processes. Nothing is asked of a
// worker, a stream or a log.
//
// Why answers for every state that a job can be in: one Reason, one sentence,
// for each thing that is open, what needs somebody first. Survey says of each
// activity how far it is, and Graph draws that.
//
// The package is pure: the time is an input, and no lookup goes further than the
// function that the caller gives.
package explain
