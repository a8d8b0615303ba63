package collation

import (
	"crypto/sha256"
	"fmt"

	"github.com/quipu-journal/quipu/journal"
)

// Payload is an output that is sent by digest (E6).
type Payload struct {
	Digest journal.Digest // SHA-256 of Body
	Body   []byte
}

// PutPayload decides on an output that is stored beside the entries of its job. It reads
// nothing, and writes the output once, if the job exists. ErrRejected: it is over MaxResult, or
// its digest differs.
func PutPayload(job journal.JobID, digest journal.Digest, body []byte) (*Plan, error) {
	if len(body) > MaxResult {
		return nil, fmt.Errorf("%w: a payload of %d bytes, the limit is %d", ErrRejected, len(body), MaxResult)
	}
	if sum := journal.Digest(sha256.Sum256(body)); sum != digest {
		return nil, fmt.Errorf("%w: the digest of the payload is %s, not %s", ErrRejected, sum, digest)
	}
	return &Plan{Job: job, Outcome: Handled, Done: true, Payload: &Payload{digest, body}}, nil
}
