//go:build !mutant_generation

package collation

// guardGeneration is always true, but for the mutant that shows what it is for:
// the ids of a job have its generation in them (C8, P29).
const guardGeneration = true
