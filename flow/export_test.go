package flow

import "github.com/quipu-journal/quipu/internal/canonical"

// Sections are the tables of the reference, for the test of docs/flow.md.
var Sections = sections

// Pointless says why a shared key means nothing for a type; empty for a key that the type takes.
func Pointless(t Type, key string) string { return pointless[string(t)][key] }

// Section is one table of the reference.
type Section = section

// ReadYAML is what a YAML source says, as canonical JSON.
func ReadYAML(src []byte) ([]byte, error) {
	c := &collector{file: "f.yaml", src: src, placed: true}
	n := readYAML(src, c)
	if n == nil || !c.unique(n, &trail{}, 1) || len(c.faults) > 0 {
		return nil, c.err()
	}
	return canonical.Payload(n.appendJSON(nil))
}
