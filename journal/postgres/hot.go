package postgres

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// hotWrite is the guard of a job that was decided on its hot state.
type hotWrite struct {
	job journal.JobID
	*store.Guard
}

// queueGuards compares the guards of hot states before anything is written (W6).
func (w *writes) queueGuards(b *batch) {
	if len(w.hot) == 0 {
		return
	}
	job, guid, rev := uuids(len(w.hot)), uuids(len(w.hot)), ints(len(w.hot))
	for i := range w.hot {
		for _, r := range w.hot[i].Rows {
			job.uuid(w.hot[i].job)
			guid.uuid(r.GUID)
			rev.int(r.Rev)
		}
	}
	b.queue("hot", guardColumns.param(pointers(w.hot)), job.value(), guid.value(), rev.value())
}

// hotRow returns the job of the n-th row that was compared, from 1.
func (w *writes) hotRow(n int) (job journal.JobID, found bool) {
	for i := range w.hot {
		h := &w.hot[i]
		if n <= len(h.Rows) {
			return h.job, true
		}
		n -= len(h.Rows)
	}
	return job, false
}

// readsWhole returns the statements that read the wanted whole jobs, as far as they are young and
// small. The rows of instances show which are: a trigger's always exists.
func (c *committer) readsWhole(w *wanted, loaded *store.Loaded) []step {
	if len(w.whole) == 0 {
		return nil
	}
	params := [][]byte{pUUIDs(w.whole), pInt(store.YoungSeq), pInt(store.YoungRows)}
	return []step{
		{"whole_instances", params, func(v row) error {
			st := loaded.States[v.job(0)]
			if st == nil {
				return nil // another transaction holds it
			}
			key := collation.InstanceKey{Activity: v.text(1), DAD: collation.DAD(v.text(2))}
			st.Whole = true
			if st.Instances[key] == nil {
				st.Instances[key] = readInstance(v, 3)
			}
			if st.Results[key] != nil {
				return nil
			}
			r, err := c.readResult(place{st.Job.ID, key}, v, 3+instanceWidth)
			if r != nil {
				st.Results[key] = r
			}
			return err
		}},
		{"whole_rows", params, func(v row) error {
			x, err := readRow(v)
			if err == nil && loaded.States[x.Job] != nil {
				loaded.States[x.Job].Rows[x.GUID] = x
			}
			return err
		}},
	}
}
