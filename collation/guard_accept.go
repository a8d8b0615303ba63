//go:build !mutant_accept

package collation

// guardAccept is always true, but for the mutant that shows what it is for:
// a response that has a receipt is not accepted again (C8).
const guardAccept = true
