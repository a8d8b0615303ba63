package collation

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// MaxRetryDelay bounds every delay before a further attempt, in µs: that of a policy and that
// which a handler asks for. It is the limit of the language, so that what deploys is what happens.
const MaxRetryDelay = Micros(flow.MaxDuration / 1000)

// retryDelay is the backoff of the policy after the given attempt (E8). A delay that the
// handler asked for (µs) goes first. The jitter is derived from the message, so that the plan
// stays a pure function.
func retryDelay(p flow.Retry, attempt int, asked int64, guid journal.GUID) Micros {
	if asked > 0 {
		return min(Micros(asked), MaxRetryDelay)
	}
	delay := float64(p.Backoff.Microseconds()) * math.Pow(p.Factor, float64(attempt-1))
	delay = math.Min(delay, float64(p.Max.Microseconds()))
	sum := sha256.Sum256(guid[:])
	unit := float64(binary.BigEndian.Uint32(sum[:4])) / math.MaxUint32 // 0…1
	delay *= 1 + p.Jitter*(2*unit-1)
	return min(max(Micros(delay), 0), MaxRetryDelay)
}
