// Package replay rebuilds the state of a job from its entries, and proves or refutes that the
// entries, and the tables beside them, keep the laws (rules 2.4, 2.5).
//
// There are two ways in. Job is the fold: New, then Apply for each entry, gives the job's
// ledgers, receipts, results, dispatch rows, waits, children, effects, pauses and obligations
// at that entry (J10). To stop early is time travel. Open lists what is still to be done, and
// Obligations the reasons. Verify reads all entries of a job once, checks each against the
// state before it, compares the last state with the tables, and returns a Report: each check is
// proved, violated (with the first entry that breaks the law, and the digit, J11), or not
// proved with this input, and why.
//
// The effect of a message on the state is gathered once per entry, as its facts; fold and laws
// use them. Some messages have no dispatch in this journal: a signal's wake-up, a child's
// outcome, an interrupt. Their rows are made up from the entry that handles them, and the laws
// compare them with the job's waits and children. Pauses has what durable functions wait for:
// suspensions name it, wake-ups end it (E12).
//
// The package is pure: entries in, state out, without clock, network or SQL, and no handler is
// called (J12). Memory grows with the instances and messages of one job, and with the outputs
// that expressions of its flow see, not with the bytes of its entries.
//
// The package judges the engine, so it works out by itself what it judges: ids (by package journal),
// the digits of ledgers, addresses, results and errors. Its code for that was written from the rules,
// and is held to internal/testkit/readings, as that of package collation is. Of collation it uses
// types, and calls nothing (tests/house holds that):
//   - InstanceKey and DAD are what instances and results are found by; an address is a text here.
//   - ActivityLedger, GUIDLedger and Micros are numbers, as callers of this package have them.
//   - Row, Wait, Pause and ResolvedWait are what the tables hold, read by a store, to be compared.
//
// It also shares the format of entries (journal), and the language of flows with its expressions
// (flow): a fault there is one of both sides.
//
// Attachments has what entries name and do not hold: the flow's definition and large outputs. With
// them Verify evaluates the flow's expressions on what the journal recorded (V17).
package replay
