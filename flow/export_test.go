package flow

// Sections are the tables of the reference, for the test of docs/flow.md.
var Sections = sections

// Pointless says why a shared key means nothing for a type; empty for a key that the type takes.
func Pointless(t Type, key string) string { return pointless[string(t)][key] }

// Section is one table of the reference.
type Section = section
