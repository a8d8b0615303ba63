package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// hotWrite is the guard of a job that was decided on its hot state.
type hotWrite struct {
	job journal.JobID
	*store.Guard
}

// spread gives the guards to the writes that move what they name: these compare it, and lock
// nothing before (W6). The guards that name more than the batch moves come first in w.hot, and
// are compared by a statement of their own.
func (m *merger) spread() {
	standsAlone := func(h *hotWrite) bool {
		j := m.jobOf[h.job]
		return j == nil || j.seqBefore == j.seqAfter || slices.ContainsFunc(h.Rows, func(r store.RowGuard) bool {
			w := m.rowOf[rowKey{h.job, r.GUID}]
			return w == nil || !w.existed
		})
	}
	for i := range m.hot {
		h := &m.hot[i]
		if standsAlone(h) {
			m.hot[i], m.hot[m.alone] = m.hot[m.alone], m.hot[i]
			m.alone++
			continue
		}
		m.jobOf[h.job].was = h.Guard
		for _, r := range h.Rows {
			m.rowOf[rowKey{h.job, r.GUID}].was = &r.Rev
		}
	}
}

// queueGuards compares guards, and locks what they name.
func queueGuards(b *batch, hot []hotWrite) {
	if len(hot) == 0 {
		return
	}
	job, guid, rev := uuids(len(hot)), uuids(len(hot)), ints(len(hot))
	for i := range hot {
		for _, r := range hot[i].Rows {
			job.uuid(hot[i].job)
			guid.uuid(r.GUID)
			rev.int(r.Rev)
		}
	}
	guards := arrays(hot, func(c *columns, h hotWrite) { record(c, guardColumns, &h) })
	b.queue("hot", append(guards, job.value(), guid.value(), rev.value())...)
}

// blame finds out whose hot state a commit has lost to, since the writes do not say it. The commit
// was rolled back. It returns the error of the statement that names them, or else err.
func (c *committer) blame(ctx context.Context, w *writes, err error) error {
	if len(w.hot) == 0 || says(err) || !repeatable(err) && !errors.Is(kindOf(err), store.ErrLost) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.s.cfg.CommitTimeout)
	defer cancel()
	b := batch{{name: "begin"}}
	queueGuards(&b, w.hot)
	named := c.conn.run(ctx, b...)
	c.open = true
	_ = c.Rollback(ctx)
	if says(named) {
		return named
	}
	return err
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
		{"whole_instances", slices.Concat(params, c.span.ends()), func(v row) error {
			st := loaded.States[v.job(0)]
			if st == nil {
				return nil // another transaction holds it
			}
			key := collation.InstanceKey{Activity: v.text(1), DAD: collation.DAD(v.text(2))}
			st.Whole = true
			if st.Instances[key] == nil {
				st.Instances[key] = readInstance(v[3:])
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
