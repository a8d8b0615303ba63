// Package replay turns the entries of a job back into its state, and proves or
// refutes that they, and the tables beside them, keep the laws (spec 2.4, 2.5).
//
// There are two ways in. Job is the fold: New, then Apply for each entry, gives
// the ledgers, receipts, results, dispatch rows, waits, children, effects, pauses
// of functions and open obligations of the job at that entry (J10); stopping early
// is time travel.
// Open says what is still to be done there, and Obligations why. Verify reads all
// entries of a job once, checks each against the state before it, compares the
// state at the end with what the tables hold, and returns a Report: for every
// check whether it was proved, violated (with the first entry that breaks the law
// and the digit, J11), or could not be proved with this input, and why.
//
// What a message does to the state is gathered once for each entry, as its facts;
// fold and laws follow them. Messages that no entry of the job dispatched, a
// signal's wake-up, a child's outcome, an interrupt, arrive: their rows are made up
// from the entry that handles them, and the laws hold them against the waits and
// children that the job had. What a durable function waits for stands in Pauses:
// suspensions name it, wakes end it (E12).
//
// The package is pure: entries in, state out; no clock, network or SQL, and no
// handler is ever called (J12). Memory grows with the instances and messages of
// one job, never with the bytes of its entries.
package replay
