//go:build mutant_row

package collation

// guardRow is always true, but for the mutant that shows what it is for:
// a row stays until its message is consumed (T1).
const guardRow = false
