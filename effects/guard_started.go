//go:build !mutant_started

package effects

// guardStarted is always true, but for the mutant that shows what it is for:
// the start of an effect is committed before its call (E4).
const guardStarted = true
