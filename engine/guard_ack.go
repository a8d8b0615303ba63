//go:build !mutant_ack

package engine

// guardAck is always true, but for the mutant that shows what it is for: a message
// is acked after its commit (T3, I8).
const guardAck = true
