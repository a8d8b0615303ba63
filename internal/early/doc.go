// Package early has what lets a run begin before its cause has committed (L4).
//
// A batch gives each early run the Cause, which is its transaction. The run may compute, and may
// answer the batch as long as that takes answers. Everything else of the run waits for the outcome
// of the commit (L3, L7). If the cause does not commit, its runs are stopped, and what they brought
// is dropped (L6). There is no timer: the batch that makes a Cause settles it.
//
// Topics are the topics whose requests may begin early in this process.
package early
