package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// rowOf reads a row of the job.
func rowOf(t testing.TB, s *Store, job journal.JobID, g journal.GUID) *collation.Row {
	t.Helper()
	v := must(s.Job(t.Context(), job))(t)
	for i := range v.Rows {
		if v.Rows[i].GUID == g {
			return &v.Rows[i]
		}
	}
	return nil
}

// J4: markers older than a day are removed, in bounded batches.
func TestPrune(t *testing.T) {
	t.Parallel()
	s := open(t)
	startJobs(t, s, "k")
	require.NoError(t, s.run(t, "INSERT INTO batches SELECT gen_random_uuid(), 1, micros() - 86400000001 FROM generate_series(1, 5)"))
	for _, want := range []int{3, 2, 0} {
		n := must(s.Prune(t.Context(), 3))(t)
		require.Equal(t, want, n)
	}
}

// lastOfChain returns the last entry of a chain.
func lastOfChain(t testing.TB, s *Store, id journal.JobID, chain journal.GUID) *journal.Entry {
	t.Helper()
	var last *journal.Entry
	require.NoError(t, s.with(t.Context(), func(c *conn) error {
		for r, err := range c.entries(t.Context(), id) {
			if err != nil {
				return err
			}
			if r.Chain != chain {
				continue
			}
			if last, err = journal.Decode(r); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NotNil(t, last)
	return last
}
