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
func (m *merger) repair(p *collation.Plan) error {
	r := p.Repair
	if r == nil {
		return nil
	}
	m.repairs = append(m.repairs, repairWrite{p.Job, r})
	for i := range r.Instances {
		if err := m.instance(p.Job, &r.Instances[i]); err != nil {
			return err
		}
	}
	for i := range r.Receipts {
		if err := m.receipt(p.Job, &r.Receipts[i]); err != nil {
			return err
		}
	}
	for i := range r.Effects {
		m.effects = append(m.effects, effectWrite{job: p.Job, Effect: &r.Effects[i], begins: true})
	}
	for i := range r.Resolved {
		m.resolved = append(m.resolved, resolvedWrite{p.Job, &r.Resolved[i]})
	}
	return nil
}

// queueRepairs deletes what repairs drop, before anything is inserted.
func (w *writes) queueRepairs(b *batch) {
	for i := range w.repairs {
		r := &w.repairs[i]
		jobs := func(n int) []byte {
			c := uuids(n)
			for range n {
				c.uuid(r.job)
			}
			return c.value()
		}
		guids := func(list []journal.GUID) []byte {
			c := uuids(len(list))
			for _, g := range list {
				c.uuid(g)
			}
			return c.value()
		}
		d := &r.Drop
		if n := len(d.Instances); n > 0 {
			activity, dad := texts(n), texts(n)
			for _, k := range d.Instances {
				activity.text(k.Activity)
				dad.text(string(k.DAD))
			}
			b.queue("repair_instances", jobs(n), activity.value(), dad.value())
		}
		if n := len(d.Receipts); n > 0 {
			b.queue("repair_receipts", jobs(n), guids(d.Receipts))
		}
		if n := len(d.Waits); n > 0 {
			guid, count := uuids(n), ints(n)
			for _, x := range d.Waits {
				guid.uuid(x.GUID)
				count.int(int64(x.Count))
			}
			b.queue("repair_waits", jobs(n), guid.value(), count.value())
		}
		if n := len(d.Effects); n > 0 {
			key, state, fence := byteas(n), texts(n), ints(n)
			for i := range d.Effects {
				key.bytes(d.Effects[i].Key[:])
				state.text(string(d.Effects[i].State))
				fence.int(d.Effects[i].Fence)
			}
			b.queue("repair_effects", jobs(n), key.value(), state.value(), fence.value())
		}
		if n := len(d.Resolved); n > 0 {
			b.queue("repair_resolved", jobs(n), guids(d.Resolved))
		}
	}
}
