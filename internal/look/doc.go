// Package look reads what the commands and the console show of one job, so that both show the
// same: what explains its state now, the job as it was at an entry of its journal, its journal
// with what each entry says, its proof and its export.
//
// It stands above the Runtime and reads the store below it. It writes nothing.
package look
