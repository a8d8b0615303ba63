package flow

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a definition.
type Fault struct {
	// File is the name given to Parse; empty for a built or stored flow.
	File string
	// Line and Column are the place, from 1; Column counts characters. They are 0 if the
	// flow was built in Go.
	Line, Column int
	// Path leads to the place by keys: activities.charge.retry.attempts.
	Path string
	// Text is the offending text, cut to a readable length; it may be empty.
	Text string
	// Message says what is wrong, with the limit, and what to do.
	Message string
}

// Error is "file:line:column: message: text"; without a file, the path replaces the
// place.
func (f Fault) Error() string {
	place := f.Path
	if f.File != "" {
		place = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
	if f.Text == "" {
		return place + ": " + f.Message
	}
	return place + ": " + f.Message + ": " + f.Text
}

// Faults are all faults of a definition, in the order of their places. It is the error of
// Parse, Build and FromCanonical.
type Faults []Fault

// Error lists the faults, one in a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}

// maxFaultText bounds the text of a fault, in characters.
const maxFaultText = 80

// collector collects faults while a definition is read.
type collector struct {
	file   string
	src    []byte
	placed bool // false for a builder, which has no lines and columns
	// builtin allows the name of a built-in flow: the flow is one, or it was stored.
	builtin bool
	faults  Faults
	more    int
}

// full says that there is no room for another fault, which it counts.
func (c *collector) full() bool {
	if len(c.faults) < MaxFaults {
		return false
	}
	c.more++
	return true
}

func (c *collector) add(p position, path, text, format string, args ...any) {
	if c.full() {
		return
	}
	if !c.placed {
		p = position{}
	}
	text = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(strings.ToValidUTF8(clip(text), "\uFFFD"))
	c.faults = append(c.faults, Fault{
		File: c.file, Line: p.line, Column: p.column, Path: path, Text: text, Message: fmt.Sprintf(format, args...),
	})
}

// at adds a fault about a value.
func (c *collector) at(n *node, path, format string, args ...any) {
	c.add(n.position, path, n.String(), format, args...)
}

// within adds a fault about a place in a string, offset characters from its start. If the
// source spells the string differently (escapes, several lines), the place is that of the
// string.
func (c *collector) within(n *node, offset int, path, text, format string, args ...any) {
	p := n.position
	if c.placed && p.line > 0 {
		spelled := c.src[p.offset:]
		quoted := len(spelled) > 0 && (spelled[0] == '"' || spelled[0] == '\'')
		if quoted {
			spelled = spelled[1:]
		}
		if len(spelled) >= len(n.text) && string(spelled[:len(n.text)]) == n.text && !strings.Contains(n.text, "\n") {
			p.column += offset
			if quoted {
				p.column++
			}
		}
	}
	c.add(p, path, text, format, args...)
}

// err returns the faults in the order of their places, or nil.
func (c *collector) err() error {
	if len(c.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(c.faults, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	if c.more > 0 {
		last := &c.faults[len(c.faults)-1]
		last.Message += fmt.Sprintf(" (and %d more faults)", c.more)
	}
	return c.faults
}
