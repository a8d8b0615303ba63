package transport

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
)

// HeaderSum is the header with the sum of a message: CRC-32C of what its headers
// say and of its body, as eight lower-case hexadecimal digits. It finds what a
// broken wire, disk or memory does to a message on its way (F17), not what somebody
// does who can write to the bus. It may be missing, as of workers in other
// languages and of builds before it.
const HeaderSum = "Quipu-Sum"

const sumDigits = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is the message's sum, as it stands on the wire. It takes the values and not
// their spelling, of which each has one, and of those only what the wire carries. It
// is of just these fields for good: builds before and after have to agree on it (F18).
func sum(m *Message) string {
	h := m.Header
	h.Traceparent = strings.TrimSpace(h.Traceparent) // as NATS does
	if h.OriginSession == [16]byte{} {
		h.OriginSeq = 0
	}
	b := make([]byte, 0, 192)
	b = append(b, h.GUID[:]...)
	for _, n := range [...]int64{int64(h.Publication), int64(h.Turn), h.Epoch, h.OriginSeq, h.PublishedAt, int64(len(h.Traceparent))} {
		b = binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // none is negative
	}
	b = append(b, h.OriginSession[:]...)
	b = append(b, h.Traceparent...)
	return fmt.Sprintf("%0*x", sumDigits, crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, m.Body))
}

// Decode reads a message that was delivered from a destination: its headers, see
// DecodeHeader, and its body. One that is not as it was sent is an error that wraps
// ErrMalformed; nothing that it says is then in the message but its body.
func Decode(from Destination, get func(name string) string, body []byte) (Message, error) {
	m := Message{To: from, Body: body}
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
