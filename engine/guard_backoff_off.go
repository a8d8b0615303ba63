//go:build mutant_backoff

package engine

// guardBackoff is always true, but for the mutant that shows what it is for:
// the time between two sends of a row grows (T2).
const guardBackoff = false
