package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// privately begins what stands for a key in a space whose keys are private; hexadecimal digits
// follow.
const privately = "sha256:"

// PrivateKey is what a space with private keys keeps of the key of a job or a signal (S15):
// "sha256:" and the SHA-256, in hexadecimal, over the space and the key. A key that begins like
// that is kept as it is: it was made so before, or of such a one, like the key of a child that is
// made of its parent's. So the digest may be given wherever the key may.
func PrivateKey(space, key string) string {
	if IsPrivateKey(key) {
		return key
	}
	sum := sha256.Sum256(labelled("quipu-key-v1").text(space).text(key))
	return privately + hex.EncodeToString(sum[:])
}

// IsPrivateKey says whether the key begins as PrivateKey makes it.
func IsPrivateKey(key string) bool {
	digits, ok := strings.CutPrefix(key, privately)
	if !ok || len(digits) < 2*sha256.Size {
		return false
	}
	for _, c := range []byte(digits[:2*sha256.Size]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
