package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/internal/canonical"
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

// position is a place in a source: line and column from 1, column in characters; offset in bytes.
type position struct{ line, column, offset int }

// node is a value of a definition from any source.
type node struct {
	position
	kind    kind
	text    string // the value of a string; the canonical JSON of any other scalar
	spelled string // a number as the source has it, if that is not its text
	items   []*node
	members []member
	size    int // number of values, including itself
	bytes   int // of all texts and keys
}

type member struct {
	position
	key   string
	value *node
}

// String is the text of a scalar as the source has it, and empty for a list or a mapping.
func (n *node) String() string { return cmp.Or(n.spelled, n.text) }

// append adds an item to a list.
func (n *node) append(item *node) {
	if item != nil {
		n.items = append(n.items, item)
		n.size, n.bytes = n.size+item.size, n.bytes+item.bytes
	}
}

// enter adds a member to a mapping.
func (n *node) enter(m member) {
	if m.value != nil {
		n.members = append(n.members, m)
		n.size, n.bytes = n.size+m.value.size, n.bytes+m.value.bytes+len(m.key)
	}
}

// get returns the first member of that name.
func (n *node) get(key string) *node {
	for i := range n.members {
		if n.members[i].key == key {
			return n.members[i].value
		}
	}
	return nil
}

// appendJSON writes a node as JSON, with the keys in the order of their bytes.
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
		for i, m := range n.sorted() {
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

// sorted are the members in the order of their keys' bytes.
func (n *node) sorted() []member {
	if slices.IsSortedFunc(n.members, byKey) {
		return n.members
	}
	return slices.SortedStableFunc(slices.Values(n.members), byKey)
}

func byKey(x, y member) int { return strings.Compare(x.key, y.key) }

// unique reports duplicate keys in all mappings of the tree, and nesting that canonical
// JSON would refuse.
func (c *collector) unique(n *node, at *trail, depth int) bool {
	if depth > canonical.MaxDepth {
		c.at(n, at.String(), "nested deeper than %d", canonical.MaxDepth)
		return false
	}
	for i, item := range n.items {
		if !c.unique(item, &trail{above: at, index: i}, depth+1) {
			return false
		}
	}
	if len(n.members) == 0 {
		return true
	}
	seen := make(map[string]position, len(n.members))
	for _, m := range n.members {
		if before, ok := seen[m.key]; ok {
			if c.full() {
				continue
			}
			c.add(m.position, at.member(m.key).String(), m.key, "the key comes twice%s", c.lineOf(before))
			continue
		}
		seen[m.key] = m.position
		if !c.unique(m.value, at.member(m.key), depth+1) {
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

// join adds a key to a path, which stays readable.
func join(path, key string) string {
	if path == "" {
		return clip(key)
	}
	return path + "." + clip(key)
}

// trail leads to a value. It is spelled for a fault only: there may be MaxNodes values, with long
// keys.
type trail struct {
	above *trail
	name  string // the key; without above, the path itself
	index int    // of an item; −1 for a member
}

func (t *trail) member(key string) *trail { return &trail{above: t, name: key, index: -1} }

// String is the path.
func (t *trail) String() string {
	switch {
	case t.above == nil:
		return t.name
	case t.index >= 0:
		return fmt.Sprintf("%s[%d]", t.above, t.index)
	}
	return join(t.above.String(), t.name)
}
