// Package mode carries settings of a runtime that are no part of its interface: ways of
// committing and sending that tests mix and benchmarks compare, all of them right.
package mode
