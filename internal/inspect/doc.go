// Package inspect is the one reader of a job. A Reader reads the tables and the journal of a job into one
// value, a view.Job: as it stands, or as it stood at any entry. The API, the commands and the console
// print that value, and a resume or a fork reads by it what there is to go on from.
//
// The way in is Reader.Job; Want says what of a job is wanted. What is wanted that the tables have is read
// from them alone. Otherwise the journal is read, from the shelf of those that were read last or from the
// database, and a fold takes its entries one by one:
//
//   - state is the job as the entries tell it: its instances with their ledgers, its messages and their
//     receipts, rows, waits, children, pauses and obligations (J10);
//   - teller makes the events, and evaluates inputs again, of which a journal only has the sums;
//   - messages, effects and ledgers gather what is told of each of these;
//   - package spans makes the tree of spans (O2), package explain the reasons, from the state.
//
// The package proves nothing, and trusts what it reads. The verifier (package replay) shares no code with
// it. Tests hold the two to each other, and what entries tell to what the tables have.
package inspect
