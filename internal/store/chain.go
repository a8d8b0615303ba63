package store

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Chain gives the plan's entry its bytes and its hash, from the job's head (J9). The caller then
// applies the plan to the state, which moves the head's seq, and sets the head's hash.
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

// GuardOf returns what the decisions on a hot state rest on (W6). plans are the plans of one job
// in their order; base is the state before the first of them.
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
