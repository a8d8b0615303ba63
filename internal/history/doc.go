// Package history tells from its journal what happened in a job, for people: the inputs
// and outputs of activities, failed attempts and why they failed, effects and operator
// actions, waits and how long they took.
//
// A Teller takes the entries of one job: first the main chain, then the effect chains.
// Events returns what happened in the order of time. The journal has only the sums of
// inputs. So a Teller evaluates inputs again from the flow's definition and the results
// so far, and shows them if their sum is the recorded one.
//
// The package is pure and proves nothing: journal-verify does that.
package history
