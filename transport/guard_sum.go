//go:build !mutant_sum

package transport

// guardSum is always true, but for the mutant that shows what it is for: a message
// that is not as it was sent is refused (F17).
const guardSum = true
