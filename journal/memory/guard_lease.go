//go:build !mutant_lease

package memory

// guardLease is always true, but for the mutant that shows what it is for:
// a lease that is alive is respected, and an old fence refused (E9).
const guardLease = true
