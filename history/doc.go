// Package history tells what happened in a job, from its journal, as people read it:
// what went in to each activity and what came out, which attempts failed and why, what
// was done outside and who said so, what it waited for and for how long.
//
// A Teller takes the entries of one job, first those of its main chain, then those of
// its effect chains, and Events gives what they tell in the order of time. Inputs are
// not in the journal, which has only their sums: they are evaluated again from the
// flow's definition and the results so far, and shown if their sum is the recorded one.
//
// The package is pure, and decides nothing: journal-verify proves a journal, this reads
// it aloud.
package history
