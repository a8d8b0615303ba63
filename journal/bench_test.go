package journal_test

import (
	"testing"

	"github.com/quipu-journal/quipu/journal"
)

// typical is an entry of the usual step: a worker's response that ends its activity and begins
// the next one.
const typical = `{"a":"charge","as":"2","b":{"o":{"id":"r-1","lines":[{"amount":12.5,"sku":"a-1"},{"amount":3,"sku":"b-2"}],"ok":true},` +
	`"q":"RBNvo1WzZ4oRRq0W9-hkng"},"bd":{"h":"YpclM0INoAGiEwzAUrsb5jA3kbgP5eQS3cq0dJTFgmc","s":2},"by":{"b":"f7fce57","w":"w-1"},` +
	`"d":",0,0","do":"ewc","s":[{"a":"ship","as":"leg1","l":1},{"i":"0-abO_1uhc-pblylLliagQ","t":"shipping"}],` +
	`"se":2,"t":1700000000004000,"v":3}`

func BenchmarkAppendEntry(b *testing.B) {
	e, err := journal.Decode(body(typical))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	buffer := make([]byte, 0, 4096)
	for b.Loop() {
		buffer = journal.AppendEntry(buffer[:0], e)
	}
	if string(buffer) != typical {
		b.Fatal("the entry has other bytes")
	}
}

func BenchmarkDecode(b *testing.B) {
	read := func(b *testing.B, decode func(journal.Record) (*journal.Entry, error)) {
		r := body(typical)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decode(r); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("trusted", func(b *testing.B) { read(b, journal.DecodeTrusted) })
	b.Run("strict", func(b *testing.B) { read(b, journal.Decode) })
}
