package postgres

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// repairWrite is what an operator's repair of a job deletes before it inserts (S11).
type repairWrite struct {
	job journal.JobID
	*collation.Repair
}

// repair joins an operator's repair to the writes. What it inserts is written like what other
// plans insert.
func (m *merger) repair(p *collation.Plan) {
	r := p.Repair
	if r == nil {
		return
	}
	m.repairs = append(m.repairs, repairWrite{p.Job, r})
	for i := range r.Instances {
		m.instance(p.Job, &r.Instances[i])
	}
	for i := range r.Receipts {
		m.receipt(p.Job, &r.Receipts[i])
	}
	for i := range r.Effects {
		m.effects = append(m.effects, effectWrite{job: p.Job, Effect: &r.Effects[i], begins: true})
	}
	for i := range r.Resolved {
		m.resolved = append(m.resolved, resolvedWrite{p.Job, &r.Resolved[i]})
	}
}

// queueRepairs deletes what repairs drop, before anything is inserted.
func (w *writes) queueRepairs(b *batch) {
	for i := range w.repairs {
		r, d := &w.repairs[i], &w.repairs[i].Drop
		drop(b, "repair_instances", r.job, d.Instances, func(c *columns, k collation.InstanceKey) {
			c.text(k.Activity)
			c.text(string(k.DAD))
		})
		guid := func(c *columns, g journal.GUID) { c.uuid(g) }
		drop(b, "repair_receipts", r.job, d.Receipts, guid)
		drop(b, "write_waits_delete", r.job, d.Waits, func(c *columns, x collation.CancelledWait) {
			c.uuid(x.GUID)
			c.int(int64(x.Count))
		})
		drop(b, "repair_effects", r.job, d.Effects, func(c *columns, f collation.DroppedEffect) {
			c.bytes(f.Key[:])
			c.text(string(f.State))
			c.int(f.Fence)
		})
		drop(b, "repair_resolved", r.job, d.Resolved, guid)
	}
}

func drop[T any](b *batch, name string, job journal.JobID, what []T, put func(*columns, T)) {
	write(b, name, what, func(c *columns, x T) { c.uuid(job); put(c, x) })
}
