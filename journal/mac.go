package journal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// MACBytes is the length of the MAC of an entry.
const MACBytes = 16

// MAC authenticates an entry in its place: HMAC-SHA256, cut to MACBytes, over space, job, chain,
// seq and body, each of a fixed length but the last (S9). A hash of the same bytes can be made
// by everybody; a MAC by those that have the key.
func MAC(key []byte, space GUID, job JobID, chain GUID, seq int64, body []byte) [MACBytes]byte {
	h := hmac.New(sha256.New, key)
	place := make([]byte, 0, len("quipu-entry-mac-v1")+3*len(space)+8)
	place = append(place, "quipu-entry-mac-v1"...)
	place = append(append(append(place, space[:]...), job[:]...), chain[:]...)
	_, _ = h.Write(binary.BigEndian.AppendUint64(place, uint64(seq))) // a hash takes everything
	_, _ = h.Write(body)
	return [MACBytes]byte(h.Sum(nil))
}
