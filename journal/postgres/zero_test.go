package postgres

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// J1: a job whose stored semaphore has no lawful history is quarantined. The comparison with the
// threshold must not prevent that.
func TestJ1QuarantineOfAnOpenJobAtTheThreshold(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	require.NoError(t, s.run(t, "UPDATE jobs SET semaphore = 0"))
	c := openCommitter(t, s)
	st := load(t, c, store.Want{Job: id, Row: id.Start()})
	p := collation.Quarantine(st, &collation.Message{Kind: journal.MessageStart, Job: id, GUID: id.Start(), Row: id.Start(), Activity: "start", DAD: ",0"},
		collation.Mode{}, errors.New("the semaphore of an open job is 0"))
	require.NoError(t, c.Commit(t.Context(), []store.Chained{store.Chain(&st.Job, p)}))
	require.Equal(t, journal.JobQuarantined, load(t, c, store.Want{Job: id}).Job.State)
}
