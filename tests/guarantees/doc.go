// Package guarantees renders GUARANTEES.md: what the product promises, where the
// promise ends, which tests hold it, and what the last runs of those tests
// counted.
//
// The claims are written by a person, in guarantees.md.tmpl. The counts are not:
// the runs that make them (make sim, mutants, faults, chaos, fuzz, differential)
// write them to counts/, one file each, with [Record] where RECORD=1 asks for it.
// The tests of this package hold GUARANTEES.md to both, and every test that it
// names to the sources; `go test ./tests/guarantees -update` writes it anew.
package guarantees
