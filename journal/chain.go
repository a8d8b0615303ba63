package journal

import (
	"crypto/sha256"
	"encoding/binary"
)

// MainChain is the chain of the engine's entries of a job. The effects of one request are a
// chain named by the request's GUID (J8).
var MainChain GUID

const (
	chainLabel = "quipu-chain-v1\x00"
	entryLabel = "quipu-entry-v1\x00"
)

// Genesis returns h₀ of a chain (J9): SHA-256 over the label and the
// length-prefixed space, job, generation and chain.
func Genesis(space string, job JobID, generation int64, chain GUID) Digest {
	b := make([]byte, 0, 128)
	b = append(b, chainLabel...)
	b = appendField(b, []byte(space))
	b = appendField(b, job[:])
	b = appendField(b, binary.BigEndian.AppendUint64(nil, uint64(generation)))
	b = appendField(b, chain[:])
	return sha256.Sum256(b)
}

// Next returns hₙ from hₙ₋₁ and the exact bytes of the entry's body (J9).
func Next(previous Digest, body []byte) Digest {
	h := sha256.New()
	var head [len(entryLabel) + len(previous) + 4]byte
	n := copy(head[:], entryLabel)
	n += copy(head[n:], previous[:])
	binary.BigEndian.PutUint32(head[n:], uint32(len(body)))
	h.Write(head[:])
	h.Write(body)
	var out Digest
	h.Sum(out[:0])
	return out
}

func appendField(dst, field []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(field)))
	return append(dst, field...)
}

// Head is the end of a chain: its last seq (0: empty) and last hash.
type Head struct {
	Seq  int64
	Hash Digest
}

// Record is one stored entry: its exact body bytes, and the hash beside them.
type Record struct {
	Job   JobID
	Chain GUID
	Seq   int64
	Body  []byte
	Hash  Digest
}
