package collation_test

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// E6: an output is stored under its own digest, up to its limit.
func TestE6PutPayload(t *testing.T) {
	t.Parallel()
	id, most := journal.JobID{1}, make([]byte, collation.MaxResult)
	p, err := collation.PutPayload(id, sha256.Sum256(most), most)
	require.NoError(t, err)
	require.Equal(t, collation.Payload{Digest: sha256.Sum256(most), Body: most}, *p.Payload)
	require.Equal(t, id, p.Job)
	over := append(most, 0)
	_, err = collation.PutPayload(id, sha256.Sum256(over), over)
	require.ErrorIs(t, err, collation.ErrRejected)
	_, err = collation.PutPayload(id, journal.Digest{1}, most)
	require.ErrorIs(t, err, collation.ErrRejected)
}
