// Package mode has settings that are not part of a runtime's interface: ways to commit and to
// send. All of them are correct; tests mix them and benchmarks compare them.
package mode
