//go:build mutant_snapshot

package collation

// guardSnapshot is always true, but for the mutant that shows what it is for:
// the message with the snapshot runs step 3, and a closed job does not stop it (C5).
const guardSnapshot = false
