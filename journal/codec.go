package journal

import (
	"cmp"
	"fmt"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// codec is one walk over a table of fields, to write or to read them. A table is a function
// that names each field of a type once, in the order of the keys: see entryFields. Members of a
// body are in that order, too, so one walk reads them; a member that no field takes is refused.
type codec struct {
	mode    mode
	strict  bool   // reading: payloads are checked, too
	known   bool   // asking: the table has the key
	version int64  // of the format
	out     []byte // writing: the text so far
	in      canonical.Scanner
	key     []byte // reading: the next member's; nil after the last one
	kind    error  // reading: of the first fault; nil means ErrNotCanonical
	entry   *Entry // the entry of the fields: they may follow from its other fields
	sender  sender // the Leg1 whose work the field belongs to
}

type mode uint8

const (
	writing mode = iota
	reading      // into a zero value
	asking       // whether the table has the key: nothing is read or written
)

func write[T any](dst []byte, v *T, table func(*codec, *T)) []byte {
	c := &codec{out: dst, version: Version}
	object(c, v, table)
	return c.out
}

// object writes or reads an object with the members of the table, and no others.
func object[T any](c *codec, v *T, table func(*codec, *T)) {
	if c.mode == writing {
		c.out = append(c.out, '{')
		table(c, v)
		c.out = append(c.out, '}')
		return
	}
	c.in.Enter('{')
	c.readKey()
	table(c, v)
	if c.key == nil {
		return
	}
	// No field took the key. Is it in the wrong place, or unknown?
	c.mode, c.known = asking, false
	table(c, v)
	c.mode = reading
	if c.known {
		c.fail(ErrNotCanonical, "the key is out of order")
	}
	c.fail(ErrUnknownField, "this build does not know the key")
}

func (c *codec) fail(kind error, reason string) {
	if c.in.Fail(reason) {
		c.kind = kind
	}
}

// end returns the first fault, also that text follows.
func (c *codec) end() error {
	f := c.in.End()
	if f == nil {
		return nil
	}
	return fmt.Errorf("%w: %s (byte %d): %s", cmp.Or(c.kind, ErrNotCanonical), f.Path, f.Offset, f.Reason)
}

// member reports whether the value of key is to be written, because it is set, or read. The
// caller then handles the value and calls next.
func (c *codec) member(key string, set bool) bool {
	if c.mode != writing {
		return string(c.key) == key && c.found()
	}
	if set {
		c.begin(key)
	}
	return set
}

// begin writes what comes before a member's value.
func (c *codec) begin(key string) {
	out := c.out
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	out = append(append(out, '"'), key...)
	c.out = append(out, '"', ':')
}

// found notes that the table has the key, and reports whether its value is to be read.
func (c *codec) found() bool {
	c.known = true
	return c.mode == reading
}

// next reads the key after a value.
func (c *codec) next() {
	if c.mode != writing {
		c.readKey()
	}
}

func (c *codec) readKey() {
	if c.key = nil; c.in.Next('}') {
		c.key = c.in.Key()
	}
}

// field is a member that is left out if zero. Most members are, so the code of member is
// repeated here for speed.
func field[T comparable](c *codec, key string, p *T, value func(*codec, *T)) {
	if c.mode == writing {
		if *p == *new(T) {
			return
		}
		c.begin(key)
	} else if string(c.key) != key || !c.found() {
		return
	}
	value(c, p)
	c.next()
}

// always is a member that is never left out.
func always[T any](c *codec, key string, p *T, value func(*codec, *T)) {
	if c.member(key, true) {
		value(c, p)
		c.next()
	}
}

// implied is a member that is left out if it equals want, which follows from earlier members.
func implied[T comparable](c *codec, key string, p *T, want T, value func(*codec, *T)) {
	switch {
	case c.mode == writing:
		if *p == want {
			return
		}
		c.begin(key)
	case string(c.key) != key:
		if c.mode == reading {
			*p = want
		}
		return
	case !c.found():
		return
	}
	value(c, p)
	c.next()
}

// section is a member that is an object with some fields of v itself; it is left out unless one
// of them is set.
func section[T any](c *codec, key string, set bool, v *T, table func(*codec, *T)) {
	if c.member(key, set) {
		object(c, v, table)
		c.next()
	}
}

// optional is a member that is left out if nil.
func optional[T any](c *codec, key string, p **T, value func(*codec, *T)) {
	if !c.member(key, *p != nil) {
		return
	}
	if c.mode == reading {
		*p = new(T)
	}
	value(c, *p)
	c.next()
}

// part is an optional object.
func part[T any](c *codec, key string, p **T, table func(*codec, *T)) {
	optional(c, key, p, func(c *codec, v *T) { object(c, v, table) })
}

// list is a member that is an array; it is left out if empty.
func list[T any](c *codec, key string, p *[]T, value func(*codec, *T)) {
	if !c.member(key, len(*p) > 0) {
		return
	}
	if c.mode == reading {
		for c.in.Enter('['); c.in.Next(']'); {
			*p = append(*p, *new(T))
			value(c, &(*p)[len(*p)-1])
		}
	} else {
		c.open()
		for i := range *p {
			at(c, &(*p)[i], value)
		}
		c.close()
	}
	c.next()
}

// parts is a list of objects.
func parts[T any](c *codec, key string, p *[]T, table func(*codec, *T)) {
	list(c, key, p, func(c *codec, v *T) { object(c, v, table) })
}

// payload is a member with user data; it is left out if nil. A strict read takes its canonical
// form, so that another spelling shows when the entry is encoded again.
func payload(c *codec, key string, p *[]byte) {
	if !c.member(key, *p != nil) {
		return
	}
	switch {
	case c.mode == writing:
		c.out = append(c.out, *p...)
	case c.strict:
		*p = c.in.Form()
	default:
		*p = c.in.Skip()
	}
	c.next()
}

// open, at and close handle a tuple: an array in which every element has its place.
func (c *codec) open() {
	if c.mode == reading {
		c.in.Enter('[')
	} else {
		c.out = append(c.out, '[')
	}
}

func at[T any](c *codec, p *T, value func(*codec, *T)) {
	if c.mode == reading {
		if !c.in.Next(']') {
			c.fail(ErrNotCanonical, "too few elements")
		}
	} else if c.out[len(c.out)-1] != '[' {
		c.out = append(c.out, ',')
	}
	value(c, p)
}

func (c *codec) close() {
	if c.mode == reading {
		if c.in.Next(']') {
			c.fail(ErrNotCanonical, "too many elements")
		}
	} else {
		c.out = append(c.out, ']')
	}
}
