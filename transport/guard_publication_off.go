//go:build mutant_publication

package transport

// guardPublication is always true, but for the mutant that shows what it is for:
// a message's id has its publication in it (T2).
const guardPublication = false
