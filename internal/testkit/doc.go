// Package testkit is what only the tests and benchmarks of this module import. Open opens a
// Runtime in a mode that no user sets; the packages inside have servers, doubles and suites.
package testkit
