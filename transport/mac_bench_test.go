package transport_test

import (
	"bytes"
	"testing"

	"github.com/quipu-journal/quipu/transport"
)

// S2: what a response of half a kibibyte costs who sends it, and who reads it.
func BenchmarkMAC(b *testing.B) {
	keys := ring(b)
	m := &transport.Message{To: transport.ToLane(3), Body: bytes.Repeat([]byte("x"), 500), Header: transport.Header{
		GUID: [16]byte{1}, Publication: 2, Turn: 1, Epoch: 3, OriginSession: [16]byte{4}, OriginSeq: 5, PublishedAt: 1764100000000000,
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Topic: "pay",
	}}
	if err := m.Sign(keys); err != nil {
		b.Fatal(err)
	}
	wire := wired(m)
	b.Run("sign", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := m.Sign(keys); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := delivered(m.To, wire, m.Body, keys); err != nil {
				b.Fatal(err)
			}
		}
	})
}
