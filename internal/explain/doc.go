// Package explain says in words what a job waits for, and draws its graph. It reads the
// ledgers and open rows of one job (store.JobView), its flow, and the sessions of
// processes. It asks no worker, stream or log.
//
// Why answers for every state of a job: one Reason, one sentence, for each open thing,
// with those that need a person first. Survey gives the state of each activity, and Graph
// draws it.
//
// The package is pure: the time is an input, and only the caller's function looks
// anything up.
package explain
