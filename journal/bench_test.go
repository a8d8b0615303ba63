package journal_test

import (
	"testing"

	"github.com/quipu-journal/quipu/journal"
)

// typical is an entry as a step of most jobs writes it: a worker's response that
// ends its activity and begins the next one.
const typical = `{"act":"charge","by":{"b":"f7fce57","w":"w-1"},"dad":",0,0",` +
	`"dis":[{"a":"ship","d":",0,0,0","g":"30cbd87f-387d-85ff-a120-9ba3f3e7a754","k":"request","t":"shipping"}],` +
	`"end":["bb47d80a-ff49-8da2-9f14-23ea075b0756"],"fo":["5c86d8af-5a5d-8d36-8d5f-1b4f4dbf2cb0"],"g":"bf227abf-2585-860c-ba4b-7b19987a411c","gen":1,` +
	`"hd":{"c":"bb47d80a-ff49-8da2-9f14-23ea075b0756","h":"da6768753fb77391dccfdfe17834863341e8e0767281896853dc3565c67e8aa3","s":2},` +
	`"job":"07c6d5c5-0719-8350-8953-f66fce6ea61b","k":"leg2","led":[["charge",",0,0","001100000000000","201100000000001"],["ship",",0,0,0","000000000000000","001100000000000"]],` +
	`"leg":2,"m":["entered","work","children"],"rc":[["bf227abf-2585-860c-ba4b-7b19987a411c","new","000011000000001","handled"]],` +
	`"rs":{"c":200,"k":"terminal","o":{"id":"r-1","lines":[{"amount":12.5,"sku":"a-1"},{"amount":3,"sku":"b-2"}],"ok":true},"q":"bb47d80a-ff49-8da2-9f14-23ea075b0756","tn":1,"ty":1},` +
	`"sem":[2,2],"seq":5,"sp":"shop","t":"1700000000004000","v":1}`

func BenchmarkAppendEntry(b *testing.B) {
	e, err := journal.Decode([]byte(typical))
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
	read := func(b *testing.B, decode func([]byte) (*journal.Entry, error)) {
		body := []byte(typical)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decode(body); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("trusted", func(b *testing.B) { read(b, journal.DecodeTrusted) })
	b.Run("strict", func(b *testing.B) { read(b, journal.Decode) })
}
