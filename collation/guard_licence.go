//go:build !mutant_licence

package collation

// guardLicence is always true, but for the mutant that shows what it is for:
// a message without its row is not handled (C5).
const guardLicence = true
