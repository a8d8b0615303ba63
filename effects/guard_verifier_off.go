//go:build mutant_verifier

package effects

// guardVerifier is always true, but for the mutant that shows what it is for:
// a verifier that does not know leaves the effect parked (3.3).
const guardVerifier = false
