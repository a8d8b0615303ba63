// Package house holds the repository to its house rules: which package may
// import which, how long a function or a file may be, that every package and
// every exported name is documented, that every rule id in the code is one of
// docs/rules.md, that the README's code is code that runs, that GUARANTEES.md names
// tests that are there, that each exported name of the root package stands in an
// example, and which words have no place here. There is no list of exceptions.
//
// Each rule is a function from sources to what breaks it, so that a test of its
// own shows that it finds something. The tests name file, line and what to do.
package house
