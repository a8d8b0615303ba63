//go:build !mutant_ordinal

package collation

// guardOrdinal is always true, but for the mutant that shows what it is for:
// the address of a pass comes from the ordinal of its own message (C6).
const guardOrdinal = true
