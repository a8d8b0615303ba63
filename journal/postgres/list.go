package postgres

import (
	bin "encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/journal"
)

// field is one column of a table and its place in a T. Only here the two are connected.
type field[T any] struct {
	name string
	// make makes an array of the column's type.
	make func(rows int) *column
	// put appends the value to the array; nil for a column that is only read.
	put func(*column, *T)
	// get reads the value from a column of a result. NULL is the zero value.
	get func(v row, i int, x *T) error
	// zero says whether the value is the zero value.
	zero func(*T) bool
	// key marks a column of the row's key, which an update does not set.
	key bool
	// sql is the expression that is read instead of the column, if any.
	sql string
}

// list is a list of columns, in the order in which statements write and read them. Statements
// name it (statements.go); Go code loops over it.
type list[T any] struct {
	name   string
	fields []field[T]
	oids   []uint32 // of the columns that are written
}

func listOf[T any](name string, fields ...field[T]) list[T] {
	l := list[T]{name: name, fields: fields}
	for i := range fields {
		if fields[i].put != nil {
			l.oids = append(l.oids, fields[i].make(0).oid)
		}
	}
	return l
}

// width returns the number of columns that are read.
func (l list[T]) width() int { return len(l.fields) }

// typeName names the composite type of the parameter with rows of the list. One array of it costs
// the server a fraction of one array for each column.
func (l list[T]) typeName() string { return "in_" + l.name }

// array makes an array of the list's type. It says no number for its element type, which differs from
// schema to schema: the server takes it from the statement. PostgreSQL 15, the oldest that is tested,
// does so.
func (l list[T]) array(rows int) *column { return newColumn(0, rows, 24*len(l.oids)) }

// record appends the written columns of x to the next array, as one element of the list's type.
func record[T any](to *columns, l list[T], x *T) {
	c := to.next(l.array)
	n, start, at := c.n, len(c.b), 0
	c.b = bin.BigEndian.AppendUint32(append(c.b, 0, 0, 0, 0), uint32(len(l.oids)))
	for i := range l.fields {
		if l.fields[i].put == nil {
			continue
		}
		c.b = bin.BigEndian.AppendUint32(c.b, l.oids[at])
		at++
		l.fields[i].put(c, x)
	}
	bin.BigEndian.PutUint32(c.b[start:], uint32(len(c.b)-start-4))
	c.n, c.nulls = n+1, 0 // put counted the columns
}

// read reads the first columns of a row into x. Other columns of the statement come after them.
func (l list[T]) read(v row, x *T) error {
	for i := range l.fields {
		if err := l.fields[i].get(v, i, x); err != nil {
			return err
		}
	}
	return nil
}

// of reads a new T.
func (l list[T]) of(v row) *T {
	x := new(T)
	_ = l.read(v, x)
	return x
}

// pick returns the list of the named columns, in the order of the names.
func (l list[T]) pick(as string, names ...string) list[T] {
	picked := make([]field[T], len(names))
	for i, name := range names {
		at := slices.IndexFunc(l.fields, func(f field[T]) bool { return f.name == name })
		if at < 0 {
			panic("postgres: no column " + name)
		}
		picked[i] = l.fields[at]
	}
	return listOf(as, picked...)
}

// The forms in which statements name a list.

func (l list[T]) names() string {
	return l.join(func(f *field[T]) string { return f.name })
}

func (l list[T]) placeholder(n int) string { return fmt.Sprintf("$%d::%s[]", n, l.typeName()) }

func (l list[T]) sets(from string) string {
	return l.join(func(f *field[T]) string {
		if f.key {
			return ""
		}
		return f.name + " = " + from + "." + f.name
	})
}

func (l list[T]) reads(alias string) string {
	all := make([]string, len(l.fields))
	for i := range l.fields {
		if all[i] = l.fields[i].sql; all[i] == "" {
			all[i] = alias + "." + l.fields[i].name
		}
	}
	return strings.Join(all, ", ")
}

// join joins a text for each column that is written.
func (l list[T]) join(say func(*field[T]) string) string {
	var all []string
	for i := range l.fields {
		if l.fields[i].put == nil {
			continue
		}
		if s := say(&l.fields[i]); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, ", ")
}

// The kinds of columns. at returns the value's place in a T.

func uuidOf[T any, V ~[16]byte](name string, at func(*T) *V) field[T] {
	return field[T]{
		name: name, make: uuids,
		put:  func(c *column, x *T) { c.uuid(*at(x)) },
		get:  func(v row, i int, x *T) error { *at(x) = V(v.guid(i)); return nil },
		zero: func(x *T) bool { return *at(x) == V{} },
	}
}

func intOf[T any, V ~int | ~int64](name string, at func(*T) *V) field[T] {
	return field[T]{
		name: name, make: ints,
		put:  func(c *column, x *T) { c.int(int64(*at(x))) },
		get:  func(v row, i int, x *T) error { *at(x) = V(v.int(i)); return nil },
		zero: func(x *T) bool { return *at(x) == 0 },
	}
}

func textOf[T any, V ~string](name string, at func(*T) *V) field[T] {
	return field[T]{
		name: name, make: texts,
		put:  func(c *column, x *T) { c.text(string(*at(x))) },
		get:  func(v row, i int, x *T) error { *at(x) = V(v.text(i)); return nil },
		zero: func(x *T) bool { return *at(x) == "" },
	}
}

func boolOf[T any](name string, at func(*T) *bool) field[T] {
	return field[T]{
		name: name, make: bools,
		put:  func(c *column, x *T) { c.bool(*at(x)) },
		get:  func(v row, i int, x *T) error { *at(x) = v.bool(i); return nil },
		zero: func(x *T) bool { return !*at(x) },
	}
}

func bytesOf[T any](name string, at func(*T) *[]byte) field[T] {
	return field[T]{
		name: name, make: byteas,
		put:  func(c *column, x *T) { c.bytes(*at(x)) },
		get:  func(v row, i int, x *T) error { *at(x) = v.bytes(i); return nil },
		zero: func(x *T) bool { return *at(x) == nil },
	}
}

func digestOf[T any](name string, at func(*T) *journal.Digest) field[T] {
	return field[T]{
		name: name, make: byteas,
		put:  func(c *column, x *T) { c.bytes(at(x)[:]) },
		get:  func(v row, i int, x *T) error { *at(x) = v.digest(i); return nil },
		zero: func(x *T) bool { return at(x).IsZero() },
	}
}

// partOf is a column of a part of a T: NULL without the part, which is made when the column is read.
func partOf[T, P any](part func(*T) **P, f field[P]) field[T] {
	return field[T]{
		name: f.name, make: f.make,
		put: func(c *column, x *T) {
			if p := *part(x); p == nil {
				c.null()
			} else {
				f.put(c, p)
			}
		},
		get: func(v row, i int, x *T) error {
			if v.null(i) {
				return nil
			}
			p := part(x)
			if *p == nil {
				*p = new(P)
			}
			return f.get(v, i, *p)
		},
	}
}

// orNull writes NULL for the zero value.
func (f field[T]) orNull() field[T] { return f.nullIf(f.zero) }

// nullIf writes NULL where unset is true.
func (f field[T]) nullIf(unset func(*T) bool) field[T] {
	put := f.put
	f.put = func(c *column, x *T) {
		if unset(x) {
			c.null()
		} else {
			put(c, x)
		}
	}
	return f
}

// asKey marks a column of the row's key.
func (f field[T]) asKey() field[T] {
	f.key = true
	return f
}

// readAs marks a column that is only read; sql is read in its place.
func (f field[T]) readAs(sql string) field[T] {
	f.put, f.sql = nil, sql
	return f
}
