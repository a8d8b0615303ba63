package wire

import (
	"encoding/binary"

	"github.com/quipu-journal/quipu/journal"
)

// LaneOf spreads jobs over lanes (T9); all messages of a job share one. The result is
// within 0 ≤ lane < lanes; lanes must be positive. Job ids are cut from SHA-256, so their
// first bytes are evenly distributed.
func LaneOf(job journal.JobID, lanes int) int {
	return int(binary.BigEndian.Uint32(job[:4]) % uint32(lanes))
}
