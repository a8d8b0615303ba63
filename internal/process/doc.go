// Package process is a process of a space behind a quipu.Runtime: it opens the connections, checks
// them, runs the roles until they drain, and watches what keeps it from its work. What users call,
// with its types, is in the root package.
package process
