//go:build !mutant_accept

package memory

// guardAccept is always true, but for the mutant that shows what it is for:
// a receipt is written once (C8).
const guardAccept = true
