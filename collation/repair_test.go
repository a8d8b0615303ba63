package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// repairing is a repair of a quarantined job at entry 7.
func repairing() (*collation.State, *collation.Repairing) {
	s := &collation.State{
		Job: collation.Job{
			ID: journal.JobID{1}, Space: "s", Generation: 1, State: journal.JobQuarantined, Semaphore: 9,
			Head: journal.Head{Seq: 7, Hash: journal.Digest{1}},
		},
		Now: 5, Rows: map[journal.GUID]*collation.Row{}, Instances: map[collation.InstanceKey]*collation.Instance{},
	}
	r := &collation.Repairing{
		Who: "ann", Reason: "the disk was replaced", Stored: s.Job, Head: s.Job.Head, Semaphore: 1, State: journal.JobOpen,
		Differences: []journal.Difference{{Table: "jobs", Row: "1", Column: "semaphore", Stored: "9", Journal: "1"}},
	}
	r.Rows.Update = []collation.Row{{GUID: journal.GUID{2}, Rev: 4}}
	return s, r
}

// S11: a repair writes what the journal gives, with an entry that holds the difference.
func TestRepaired(t *testing.T) {
	t.Parallel()
	s, r := repairing()
	p, err := collation.Repaired(s, r, collation.Mode{Writer: "suite"})
	require.NoError(t, err)
	e := p.Entry
	require.Equal(t, journal.KindOperator, e.Kind)
	require.Equal(t, int64(8), e.Seq)
	require.Equal(t, &journal.Operator{Action: collation.ActionRepair, Who: "ann", Reason: "the disk was replaced"}, e.Operator)
	require.Equal(t, r.Differences, e.Repaired)
	require.Equal(t, journal.DeriveOperator(s.Job.ID.Start(), collation.ActionRepair, 8), e.GUID)
	require.Equal(t, journal.SemaphoreMove{Before: 9, After: 1}, p.Semaphore)
	require.Equal(t, journal.JobOpen, p.NewState)
	require.Equal(t, int64(5), p.Update[0].Rev)
	require.Equal(t, int64(4), r.Rows.Update[0].Rev, "the decision may be taken again")
}

// Of a job that runs, or has changed since it was read, nothing is written.
func TestRepairedRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *collation.State, r *collation.Repairing)
		err    error
	}{
		"it is open": {func(s *collation.State, r *collation.Repairing) {
			s.Job.State, r.Stored.State = "open", "open"
		}, collation.ErrAction},
		"it has expired": {func(s *collation.State, r *collation.Repairing) {
			s.Job.State, r.Stored.State = "expired", "expired"
		}, collation.ErrAction},
		"its head has moved":  {func(s *collation.State, _ *collation.Repairing) { s.Job.Head.Hash[1]++ }, collation.ErrStale},
		"its state is other":  {func(s *collation.State, _ *collation.Repairing) { s.Job.State = journal.JobFailed }, collation.ErrStale},
		"its count is other":  {func(s *collation.State, _ *collation.Repairing) { s.Job.Semaphore++ }, collation.ErrStale},
		"its journal is less": {func(_ *collation.State, r *collation.Repairing) { r.Head.Seq-- }, collation.ErrAction},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r := repairing()
			c.change(s, r)
			p, err := collation.Repaired(s, r, collation.Mode{})
			require.ErrorIs(t, err, c.err)
			require.Nil(t, p)
		})
	}
}
