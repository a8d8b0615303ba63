// Package readings has what anybody has to read in ledgers, addresses and entries (chapter 1). The
// cases were derived from the rules by hand, and by no code. The engine, which decides by package
// collation, and the verifier, package replay, read by code of their own: a test of each reads
// readings.txt, so that a mistake of one is not a mistake of both.
package readings
