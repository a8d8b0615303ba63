//go:build mutant_testset

package memory

// guardTestset is always true, but for the mutant that shows what it is for:
// markers, head and semaphore move by test-and-set under the lock of their job (C3, J3).
const guardTestset = false
