// Package effectstest is a store.Worker in memory, for tests of handlers and of their
// runtime. A run loses its request when the test says so, not by a clock, so that a crash
// in any window of spec 3.2 is one call.
package effectstest
