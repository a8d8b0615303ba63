//go:build !mutant_tx

package memory

// guardTx is always true, but for the mutant that shows what it is for: what the
// body of a Tx effect writes commits with the effect (E3).
const guardTx = true
