package memory

import (
	"github.com/quipu-journal/quipu/collation"
)

// repair writes what an operator's repair changes besides rows and waits (S11): first it drops,
// then it inserts.
func (s *Store) repair(u *undo, j *job, r *collation.Repair) error {
	if r == nil {
		return nil
	}
	for _, key := range r.Drop.Instances {
		drop(u, j.instances, key)
	}
	for _, g := range r.Drop.Receipts {
		drop(u, j.receipts, g)
	}
	for _, x := range r.Drop.Waits {
		w := j.waits[x.GUID]
		if w == nil || w.Count != x.Count {
			return lost("wait %s is gone, or was counted", x.GUID)
		}
		s.dropWait(u, j, w)
	}
	for _, x := range r.Drop.Effects {
		f := j.effects[x.Key]
		if f == nil || f.State != x.State || f.Fence != x.Fence {
			return lost("effect %s has changed", x.Key)
		}
		drop(u, j.effects, x.Key)
	}
	for _, g := range r.Drop.Resolved {
		j.unwake(u, g)
	}
	for i := range r.Instances {
		if err := j.moveLedger(u, &r.Instances[i]); err != nil {
			return err
		}
	}
	for i := range r.Receipts {
		if err := j.moveReceipt(u, &r.Receipts[i]); err != nil {
			return err
		}
	}
	for i := range r.Effects {
		f := r.Effects[i]
		if j.effects[f.Key] != nil {
			return lost("effect %s is there", f.Key)
		}
		put(u, j.effects, f.Key, &f)
	}
	for i := range r.Resolved {
		if err := j.wake(u, &r.Resolved[i]); err != nil {
			return err
		}
	}
	return nil
}
