package flow

import (
	"fmt"

	"github.com/quipu-journal/quipu/canonical"
)

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindMap
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "a mapping"}[k]
}

// position is a place in a source, from 1; column in characters.
type position struct{ line, column int }

// node is a value of a definition from any source.
type node struct {
	position
	kind    kind
	text    string // the value of a string; the canonical JSON of any other scalar
	items   []*node
	members []member
	size    int // number of values, including itself
}

type member struct {
	position
	key   string
	value *node
}

// String is the text of a scalar, and empty for a list or a mapping.
func (n *node) String() string { return n.text }

// get returns the first member of that name.
func (n *node) get(key string) *node {
	for i := range n.members {
		if n.members[i].key == key {
			return n.members[i].value
		}
	}
	return nil
}

// appendJSON writes a node as JSON, with the keys in their order in the source.
func (n *node) appendJSON(dst []byte) []byte {
	switch n.kind {
	case kindString:
		return canonical.AppendString(dst, n.text)
	case kindList:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendJSON(dst)
		}
		return append(dst, ']')
	case kindMap:
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = canonical.AppendString(dst, m.key)
			dst = m.value.appendJSON(append(dst, ':'))
		}
		return append(dst, '}')
	}
	return append(dst, n.text...)
}

// unique reports duplicate keys in all mappings of the tree, and nesting that canonical
// JSON would refuse.
func (c *collector) unique(n *node, path string, depth int) bool {
	if depth > canonical.MaxDepth {
		c.at(n, path, "nested deeper than %d", canonical.MaxDepth)
		return false
	}
	for i, item := range n.items {
		if !c.unique(item, fmt.Sprintf("%s[%d]", path, i), depth+1) {
			return false
		}
	}
	seen := make(map[string]position, len(n.members))
	for _, m := range n.members {
		if before, ok := seen[m.key]; ok {
			c.add(m.position, join(path, m.key), m.key, "the key comes twice%s", c.lineOf(before))
			continue
		}
		seen[m.key] = m.position
		if !c.unique(m.value, join(path, m.key), depth+1) {
			return false
		}
	}
	return true
}

func (c *collector) lineOf(p position) string {
	if !c.placed {
		return ""
	}
	return fmt.Sprintf(", first in line %d", p.line)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
