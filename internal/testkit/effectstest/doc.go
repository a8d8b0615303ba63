// Package effectstest has requests for tests of handlers and of their runtime: rows in a store in memory (package
// memstore), and what an engine does to them. A run loses its request when the test says so, not by a clock, so that a
// crash in any window of spec 3.2 is one call.
package effectstest
