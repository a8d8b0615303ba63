package transport

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
)

// HeaderSum is the header with the sum of a message: CRC-32C over the values of its
// headers and its body, as eight lower-case hexadecimal digits. It detects damage by a
// wire, disk or memory (F17), not a forgery by somebody who can write to the bus. It may
// be missing, as in messages of workers in other languages and of older builds.
const HeaderSum = "Quipu-Sum"

const sumDigits = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is the message's sum in its wire form. It covers values, not their spelling, and
// only values that the wire carries. The fields must never change: older and newer builds
// have to agree on the sum (F18).
func sum(m *Message) string {
	h := m.Header
	h.Traceparent = strings.TrimSpace(h.Traceparent) // as NATS does
	if h.OriginSession == [16]byte{} {
		h.OriginSeq = 0
	}
	b := make([]byte, 0, 192)
	b = append(b, h.GUID[:]...)
	for _, n := range [...]int64{
		int64(h.Publication), int64(h.Turn), h.Epoch, h.OriginSeq, h.PublishedAt, int64(len(h.Traceparent)),
	} {
		b = binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // none is negative
	}
	b = append(b, h.OriginSession[:]...)
	b = append(b, h.Traceparent...)
	b = append(b, h.Topic...)
	return fmt.Sprintf("%0*x", sumDigits, crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, m.Body))
}

// Decode reads a message that was delivered from a destination: its MAC (Keys may be nil),
// its headers, see DecodeHeader, and its body. A message that is not as it was sent is an
// error that wraps ErrForged, ErrNoKey or ErrMalformed; the result then has no header.
func Decode(from Destination, get func(name string) string, body []byte, keys Keys) (Message, error) {
	m := Message{To: from, Body: body}
	if err := authentic(from, get, body, keys); err != nil {
		return m, err
	}
	var err error
	if m.Header, err = DecodeHeader(get); err != nil {
		return m, err
	}
	if said := get(HeaderSum); said != "" && said != sum(&m) {
		m.Header = Header{}
		return m, fmt.Errorf("%w: it is not as it was sent: header %s is %q", ErrMalformed, HeaderSum, said[:min(len(said), maxShown)])
	}
	return m, nil
}
