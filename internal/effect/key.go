package effect

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/quipu-journal/quipu/journal"
)

// keyLabel keeps effect keys apart from every other identifier (C8).
const keyLabel = "quipu-effect-v1"

// argsHex is how many digits of the arguments' digest a recorded name shows;
// argsSuffix is the length of `{digits}`.
const (
	argsHex    = 16
	argsSuffix = argsHex + 2
)

// Identity is the place of a handler's run within its job. With the call it makes the
// effect's key (E1). Turn and attempt are not part of it.
type Identity struct {
	Space      string
	Job        journal.JobID
	Generation int64
	Version    string // of the flow
	Activity   string
	DAD        string
	Element    int
}

// key is SHA-256 over typed, length-prefixed fields (E1). n is the number of
// recorded outcomes "not done" (E5).
func (id *Identity) key(c *Call, n int) journal.Digest {
	b := make([]byte, 0, 256)
	b = appendField(b, 'l', keyLabel)
	b = appendField(b, 's', id.Space)
	b = appendField(b, 'g', string(id.Job[:]))
	b = appendInt(b, id.Generation)
	b = appendField(b, 's', id.Version)
	b = appendField(b, 's', id.Activity)
	b = appendField(b, 's', id.DAD)
	b = appendInt(b, int64(id.Element))
	b = appendField(b, 's', c.name)
	switch {
	case c.keyed:
		b = appendField(b, 'k', c.explicit)
	case c.placed:
		b = appendField(b, 'p', c.position)
	case c.own != "":
		b = appendField(b, 'o', c.own)
	default:
		b = appendField(b, 'a', string(c.args))
	}
	b = appendInt(b, int64(n))
	return sha256.Sum256(b)
}

func appendField(b []byte, kind byte, data string) []byte {
	b = append(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

func appendInt(b []byte, n int64) []byte {
	b = binary.BigEndian.AppendUint32(append(b, 'i'), 8)
	return binary.BigEndian.AppendUint64(b, uint64(n))
}

func argsDigest(args []byte) string {
	sum := sha256.Sum256(args)
	return hex.EncodeToString(sum[:])[:argsHex]
}
