// Package gobuild builds the programs that tests run. They are built as the test
// itself was: with the race detector where it has it, so that they look for races
// too, and so that a test run compiles what they share once. A program that several
// test binaries run is linked by the first of them.
package gobuild
