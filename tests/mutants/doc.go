// Command mutants takes one guard of the protocol away at a time and shows that
// something notices: the simulator, or a test that the mutant names. The product
// knows nothing of it. A mutant is a file NAME.mutant of this directory:
//
//	What the guard holds, with the id of its rule (C5).
//	noticed by engine/sim TestSimulation
//
//	collation/step.go
//	-text that the file has exactly once
//	+what stands there instead
//
// The second line names a package and what of its tests has to go red; the
// simulator plays worlds until it does, and a test is run three times at most. More
// such lines name more: each has to go red. Then come the files of the product, and
// below each its edits, which a blank line may set apart. A text is lines or a part
// of a line. It is an error when the file does not have it exactly once, which every
// test run looks at, so that a mutant goes along with what it changes.
//
//	mutants [NAME...]    these, or all; SEEDS is how many worlds at most (2000)
//	mutants claims       those that a test of GUARANTEES.md has to notice
//
// A claim of GUARANTEES.md is shown if one of the tests that it names notices a
// mutant. The simulator and the suites of the stores have too many cases to show
// a claim by themselves; of a suite the claim names a case. Claims that no mutant
// is about are marked in claims.txt, with the reason. A test holds that there is
// no other.
//
// A mutant that nothing notices is a test that is missing, and fails the run.
package main
