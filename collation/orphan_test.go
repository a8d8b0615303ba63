package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// C5, C10: a row ends if only the tombstone of its job is left, or neither the job nor its
// start exists. It stays if the job exists or may still begin.
func TestC5WhichRowsGo(t *testing.T) {
	t.Parallel()
	row := collation.RowKey{Job: journal.JobID{1}, GUID: journal.GUID{2}}
	job, start := &collation.State{}, &collation.Row{}
	for name, c := range map[string]struct {
		tombstone bool
		job       *collation.State
		start     *collation.Row
		goes      bool
	}{
		"a tombstone":              {tombstone: true, goes: true},
		"neither job nor start":    {goes: true},
		"the job":                  {job: job},
		"a child that may begin":   {start: start},
		"a key that is used again": {tombstone: true, start: start, goes: true},
	} {
		p := collation.Discard(row, c.tombstone, c.job, c.start)
		require.Equal(t, c.goes, p != nil, name)
		if c.goes {
			require.Equal(t, &collation.Plan{
				Job: row.Job, Message: row.GUID, Outcome: collation.Unlicensed, Done: true, Discard: []collation.RowKey{row},
			}, p, name)
		}
	}
}
