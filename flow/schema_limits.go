package flow

import (
	"strings"

	"github.com/quipu-journal/quipu/flow/internal/schema"
)

// Limits of the schema of a flow's input. The library that compiles it takes the square of some.
const (
	// MaxSubschemas bounds the mappings and booleans in a schema: each may be a subschema.
	MaxSubschemas = 5_000
	// MaxSchemaValues bounds the values in a schema, for example in an enum.
	MaxSchemaValues = 100_000
	// MaxSchemaPaths bounds the lengths of their paths together, in bytes.
	MaxSchemaPaths = 1 << 20
	// MaxSchemaIDs bounds the identifiers (`$id`) in a schema.
	MaxSchemaIDs = 500
	// MaxLooseRefs bounds the references in a schema to what no keyword makes a subschema.
	MaxLooseRefs = 500
	// MaxPattern bounds a pattern in a schema, in bytes.
	MaxPattern = schema.MaxPattern
	// MaxPatternSize bounds the patterns of a schema together, in bytes and instructions.
	MaxPatternSize = schema.MaxPatternSize
	// MaxSchemaNesting bounds how many rules of a schema are applied within each other at one time.
	MaxSchemaNesting = schema.MaxNesting
	// MaxProblems bounds the problems of an InputError.
	MaxProblems = schema.MaxProblems
)

// schemaIsBounded looks at a schema before it is compiled.
func (c *collector) schemaIsBounded(n *node) bool {
	s := schemaSize{collector: c, loose: map[string]bool{}}
	s.limit(n, n.size, MaxSchemaValues, "a schema has at most %d values")
	s.visit(n, 0)
	return !s.refused
}

type schemaSize struct {
	*collector
	subschemas, paths, ids int
	loose                  map[string]bool
	refused                bool
}

// visit counts a value; length is that of its path in the schema.
func (s *schemaSize) visit(n *node, length int) {
	if s.refused {
		return
	}
	if n.kind == kindMap || n.kind == kindBool {
		s.subschemas++
		s.paths += length
		s.limit(n, s.subschemas, MaxSubschemas, "a schema has at most %d mappings and booleans")
		s.limit(n, s.paths, MaxSchemaPaths, "the paths of the subschemas of a schema have at most %d bytes in all: use shorter names, or $defs")
	}
	for _, item := range n.items {
		s.visit(item, length+len("/10000"))
	}
	for i := range n.members {
		m := &n.members[i]
		s.keyword(m)
		s.visit(m.value, length+len("/")+len(m.key))
	}
}

// limit makes a fault of a count above its limit, once.
func (s *schemaSize) limit(n *node, count, limit int, format string) {
	if count > limit && !s.refused {
		s.refused = true
		s.add(n.position, "input", "", format, limit)
	}
}

// keyword counts what some keywords make dear.
func (s *schemaSize) keyword(m *member) {
	switch m.key {
	case "$id", "id":
		if m.value.kind == kindString {
			s.ids++
			s.limit(m.value, s.ids, MaxSchemaIDs, "a schema has at most %d identifiers")
		}
	case "pattern":
		if m.value.kind == kindString {
			s.limit(m.value, len(m.value.text), MaxPattern, "a pattern has at most %d bytes")
		}
	case "patternProperties":
		for _, p := range m.value.members {
			s.limit(p.value, len(p.key), MaxPattern, "a pattern has at most %d bytes")
		}
	case "$ref", "$dynamicRef":
		if _, target, _ := strings.Cut(m.value.text, "#"); m.value.kind == kindString && isLoose(target) {
			s.loose[m.value.text] = true
			s.limit(m.value, len(s.loose), MaxLooseRefs, "at most %d references lead to what no keyword makes a subschema: use $defs")
		}
	}
}

// The keywords that have a subschema, a list of them, or a mapping of them.
const (
	oneSchema    = " not if then else items additionalItems additionalProperties propertyNames contains unevaluatedItems unevaluatedProperties contentSchema "
	listOfSchema = " allOf anyOf oneOf prefixItems items "
	mapOfSchema  = " $defs definitions properties patternProperties dependentSchemas dependencies "
)

// isLoose reports whether a JSON pointer leads through something else.
func isLoose(pointer string) bool {
	steps := strings.Split(pointer, "/")
	if steps[0] != "" {
		return false // an anchor
	}
	for steps = steps[1:]; len(steps) > 0; {
		word := " " + steps[0] + " "
		switch {
		case strings.Contains(mapOfSchema, word),
			strings.Contains(listOfSchema, word) && len(steps) > 1 && isIndex(steps[1]):
			if len(steps) == 1 {
				return true
			}
			steps = steps[2:]
		case strings.Contains(oneSchema, word):
			steps = steps[1:]
		default:
			return true
		}
	}
	return false
}

func isIndex(step string) bool { return step != "" && strings.Trim(step, "0123456789") == "" }
