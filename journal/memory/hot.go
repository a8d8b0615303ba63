package memory

import (
	"errors"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var errGuard = errors.New("memory: a job is not as its hot state says, or is locked")

// guard locks the jobs of plans that were decided on hot states, without waiting, and compares
// their guards (W6).
func (c *committer) guard(plans []store.Chained) error {
	e := &store.LostError{Err: errGuard}
	for i := range plans {
		g, id := plans[i].Guard, plans[i].Plan.Job
		if g != nil && !c.stands(id, g) {
			e.Hot = append(e.Hot, id)
		}
	}
	if len(e.Hot) > 0 {
		return e
	}
	return nil
}

func (c *committer) stands(id journal.JobID, g *store.Guard) bool {
	j := c.s.living(id)
	if owner := c.s.owner(id); j == nil || owner != nil && owner != c.txn {
		return false
	}
	if j.State != g.State || j.Semaphore != g.Semaphore || j.Head != g.Head {
		return false
	}
	for _, r := range g.Rows {
		if row := c.s.row(id, r.GUID); row == nil || row.Rev != r.Rev {
			return false
		}
	}
	if c.s.owner(id) == nil {
		c.s.locks[id] = &lock{owner: c.txn}
		c.txn.jobs = append(c.txn.jobs, id)
	}
	return true
}

// readWhole reads the whole state of a young and small job (W6).
func (c *committer) readWhole(j *job, st *collation.State) error {
	if j.Head.Seq > store.YoungSeq || len(j.instances) > store.YoungRows || len(c.s.rows[j.ID]) > store.YoungRows || len(j.waits) > 0 {
		return nil
	}
	for _, r := range j.receipts {
		if r.Verdict == journal.VerdictHandled && !r.Ledger.Complete() {
			return nil
		}
	}
	for key, i := range j.instances {
		var results []collation.InstanceKey
		if i.ResultSeq > 0 {
			results = append(results, key)
		}
		if err := j.read(st, []collation.InstanceKey{key}, results, nil); err != nil {
			return err
		}
	}
	for g, row := range c.s.rows[j.ID] {
		c.txn.rows[g] = true
		ask(st.Rows, g, func() *collation.Row { return copyRow(row) })
	}
	st.Whole = true
	return nil
}
