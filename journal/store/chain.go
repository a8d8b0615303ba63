package store

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Chain gives the plan's entry its bytes and its hash, from the job's head
// (J9); the caller then applies the plan to the state, which moves the head's
// seq, and sets its hash.
func Chain(job *collation.Job, p *collation.Plan) Chained {
	c := Chained{Plan: p}
	if p.Entry == nil {
		return c
	}
	previous := job.Head.Hash
	if job.Head.Seq == 0 {
		previous = journal.Genesis(job.Space, job.ID, job.Generation, journal.MainChain)
	}
	c.Body = journal.Encode(p.Entry)
	c.Hash = journal.Next(previous, c.Body)
	job.Head = journal.Head{Seq: p.Entry.Seq, Hash: c.Hash}
	return c
}

// GuardOf is what the decisions on a hot state stand on: the plans of one job, in
// their order, and the state as it was before the first (W6).
func GuardOf(base *collation.State, plans []*collation.Plan) *Guard {
	g := &Guard{State: base.Job.State, Semaphore: base.Job.Semaphore, Head: base.Job.Head}
	seen := map[journal.GUID]bool{}
	note := func(guid journal.GUID) {
		if row := base.Rows[guid]; row != nil && !seen[guid] {
			seen[guid] = true
			g.Rows = append(g.Rows, RowGuard{GUID: guid, Rev: row.Rev})
		}
	}
	for _, p := range plans {
		for i := range p.Update {
			note(p.Update[i].GUID)
		}
		for _, guid := range p.Delete {
			note(guid)
		}
	}
	return g
}
