//go:build mutant_semaphore

package memory

// guardSemaphore is always true, but for the mutant that shows what it is for:
// the semaphore is read under the lock of its job (C14).
const guardSemaphore = false
