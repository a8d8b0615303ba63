package postgres

import (
	bin "encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/journal"
)

// Type numbers of PostgreSQL, which never change (pg_type.dat).
const (
	oidBool  = 16
	oidBytea = 17
	oidInt8  = 20
	oidText  = 25
	oidUUID  = 2950
)

// column builds an array parameter in the binary format: a header of 20 bytes, then each element
// with its length before it.
type column struct {
	b     []byte
	n     uint32
	oid   uint32
	nulls uint32
}

const arrayHeader = 20

func newColumn(oid uint32, rows, width int) *column {
	return &column{b: make([]byte, arrayHeader, arrayHeader+rows*(4+width)), oid: oid}
}

func uuids(rows int) *column  { return newColumn(oidUUID, rows, 16) }
func ints(rows int) *column   { return newColumn(oidInt8, rows, 8) }
func bools(rows int) *column  { return newColumn(oidBool, rows, 1) }
func texts(rows int) *column  { return newColumn(oidText, rows, 12) }
func byteas(rows int) *column { return newColumn(oidBytea, rows, 32) }

func (c *column) length(n int) {
	c.b = bin.BigEndian.AppendUint32(c.b, uint32(n))
	c.n++
}

func (c *column) uuid(v [16]byte) { c.length(16); c.b = append(c.b, v[:]...) }
func (c *column) int(v int64)     { c.length(8); c.b = bin.BigEndian.AppendUint64(c.b, uint64(v)) }
func (c *column) text(v string)   { c.length(len(v)); c.b = append(c.b, v...) }
func (c *column) bytes(v []byte)  { c.length(len(v)); c.b = append(c.b, v...) }

func (c *column) bool(v bool) {
	c.length(1)
	c.b = append(c.b, pBool(v)...)
}

func (c *column) null() {
	c.b = append(c.b, 0xff, 0xff, 0xff, 0xff)
	c.n++
	c.nulls = 1
}

// The some… methods write NULL for an unset value.
func (c *column) someInt(v int64) {
	if v == 0 {
		c.null()
	} else {
		c.int(v)
	}
}

func (c *column) someUUID(v [16]byte) {
	if v == [16]byte{} {
		c.null()
	} else {
		c.uuid(v)
	}
}

func (c *column) someBytes(v []byte) {
	if v == nil {
		c.null()
	} else {
		c.bytes(v)
	}
}

// value completes the header and returns the parameter.
func (c *column) value() []byte {
	h := c.b[:arrayHeader]
	bin.BigEndian.PutUint32(h[4:], c.nulls)
	bin.BigEndian.PutUint32(h[8:], c.oid)
	if c.n == 0 {
		bin.BigEndian.PutUint32(h, 0)
		return h[:12]
	}
	bin.BigEndian.PutUint32(h, 1)
	bin.BigEndian.PutUint32(h[12:], c.n)
	bin.BigEndian.PutUint32(h[16:], 1)
	return c.b
}

// columns builds array parameters row by row: each value goes to the next of them.
type columns struct {
	all  []*column
	at   int
	rows int
}

// arrays returns array parameters with an element for each x, of which there is at least one. put
// appends one element to each of them, always of the same types.
func arrays[T any](xs []T, put func(*columns, T)) [][]byte {
	c := &columns{rows: len(xs)}
	for _, x := range xs {
		c.at = 0
		put(c, x)
	}
	params := make([][]byte, len(c.all))
	for i := range c.all {
		params[i] = c.all[i].value()
	}
	return params
}

func (c *columns) next(of func(rows int) *column) *column {
	if c.at == len(c.all) {
		c.all = append(c.all, of(c.rows))
	}
	c.at++
	return c.all[c.at-1]
}

func (c *columns) uuid(v [16]byte)     { c.next(uuids).uuid(v) }
func (c *columns) someUUID(v [16]byte) { c.next(uuids).someUUID(v) }
func (c *columns) int(v int64)         { c.next(ints).int(v) }
func (c *columns) someInt(v int64)     { c.next(ints).someInt(v) }
func (c *columns) text(v string)       { c.next(texts).text(v) }
func (c *columns) bytes(v []byte)      { c.next(byteas).bytes(v) }
func (c *columns) someBytes(v []byte)  { c.next(byteas).someBytes(v) }
func (c *columns) bool(v bool)         { c.next(bools).bool(v) }

// intAt writes NULL for nil.
func (c *columns) intAt(v *int64) {
	if v == nil {
		c.next(ints).null()
	} else {
		c.int(*v)
	}
}

// Single parameters.

func pUUID[T ~[16]byte](v T) []byte { return v[:] }
func pInt(v int64) []byte           { return bin.BigEndian.AppendUint64(nil, uint64(v)) }
func pText(v string) []byte         { return append([]byte{}, v...) }
func pDigest(v journal.Digest) []byte {
	return v[:]
}

func pBool(v bool) []byte {
	if v {
		return []byte{1}
	}
	return []byte{0}
}

func pTexts(vs []string) []byte {
	c := texts(len(vs))
	for _, v := range vs {
		c.text(v)
	}
	return c.value()
}

func pUUIDs[T ~[16]byte](vs []T) []byte {
	c := uuids(len(vs))
	for _, v := range vs {
		c.uuid(v)
	}
	return c.value()
}

// row is one row of a result, in the binary format. NULL reads as the zero value.
type row [][]byte

func (r row) null(i int) bool { return r[i] == nil }

func (r row) int(i int) int64 {
	switch len(r[i]) {
	case 8:
		return int64(bin.BigEndian.Uint64(r[i]))
	case 4:
		return int64(int32(bin.BigEndian.Uint32(r[i])))
	}
	return 0
}

func (r row) text(i int) string { return string(r[i]) }

// lines returns the lines of a text, none if it is empty.
func (r row) lines(i int) []string {
	if len(r[i]) == 0 {
		return nil
	}
	return strings.Split(r.text(i), "\n")
}

// numbers reads lines of numbers; what is none is 0.
func (r row) numbers(i int) []int64 {
	var all []int64
	for _, text := range r.lines(i) {
		n, _ := strconv.ParseInt(text, 10, 64)
		all = append(all, n)
	}
	return all
}

func (r row) bytes(i int) []byte { return slices.Clone(r[i]) }
func (r row) bool(i int) bool    { return len(r[i]) == 1 && r[i][0] == 1 }

func (r row) guid(i int) (g journal.GUID) {
	copy(g[:], r[i])
	return g
}

// flow reads a name, a version and a digest.
func (r row) flow(i int) journal.FlowRef {
	return journal.FlowRef{Name: r.text(i), Version: r.text(i + 1), Digest: r.digest(i + 2)}
}

func (r row) job(i int) journal.JobID { return journal.JobID(r.guid(i)) }

func (r row) digest(i int) (d journal.Digest) {
	copy(d[:], r[i])
	return d
}
