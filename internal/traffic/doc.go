// Package traffic counts which messages a process has sent, and what carried them (O4).
//
// The engine and the bus of a process share one Counts. To count costs an atomic addition, since it
// happens on the way of every message; who collects the metrics reads the numbers.
package traffic
