package replay

import (
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Cut is a job as it was at an entry of its main chain, from which another job is to go on, and as
// it is now (O12). Input is the job's input.
type Cut struct {
	Input []byte

	at       int64
	was, now *Job
}

// NewCut begins the replay of the job, before its first entry. at is the number of the entry.
func NewCut(h Header, at int64) *Cut { return &Cut{at: at, was: New(h), now: New(h)} }

// Apply folds the next entry of its chain. Errors are those of Job.Apply.
func (c *Cut) Apply(r journal.Record) error {
	if err := c.now.Apply(r); err != nil {
		return err
	}
	if !r.Chain.IsZero() {
		return nil
	}
	if r.Seq == 1 {
		e, err := journal.Decode(r)
		if err != nil {
			return err
		}
		c.Input = e.Input
	}
	if r.Seq > c.at {
		return nil
	}
	return c.was.Apply(r)
}

// Clean returns nil if what was done before the entry can be told apart from what was done after
// it, once all entries are applied. Otherwise the error says what stands in the way, and which
// entries would do. f is the job's flow.
func (c *Cut) Clean(f *flow.Flow) error {
	if last := c.now.At.Seq; c.at < 1 || c.at > last {
		return fmt.Errorf("there is no entry %d: its journal has the entries 1 to %d", c.at, last)
	}
	for key, i := range c.was.Instances {
		act, _ := f.Activity(key.Activity)
		ledger := journal.Ledger(i.Ledger)
		switch {
		case act == nil:
			continue
		case i.Repeat && activityDigits[gLeg2].value(ledger) > 0:
			return fmt.Errorf("the hook %s takes signal after signal: what follows them cannot be taken over", act.Name)
		case act.Type != flow.TypeWorker || !activityDigits.set(gComplete, ledger) || c.ended(key) > 0:
			continue
		}
		if err := c.apart(act, key); err != nil {
			return err
		}
	}
	return nil
}

// ended is the entry with the result of an instance or an element; 0: it had none by the cut.
func (c *Cut) ended(key collation.InstanceKey) int64 {
	seq := int64(0)
	if i := c.now.Instances[key]; i != nil {
		seq = i.ResultSeq
	}
	if p := c.now.Passes[key]; p != nil && seq == 0 {
		seq = p.ResultSeq
	}
	if seq > c.at {
		return 0
	}
	return seq
}

// apart refuses an instance with a request that was under way and has recorded effects.
func (c *Cut) apart(act *flow.Activity, key collation.InstanceKey) error {
	i := c.now.Instances[key]
	for n := range max(i.Count, 1) {
		if i.Count > 0 && c.ended(collation.InstanceKey{Activity: fmt.Sprintf("%s[%d]", key.Activity, n), DAD: key.DAD}) > 0 {
			continue
		}
		if c.now.Chains[journal.DeriveRequest(i.Leg1, n)].Seq == 0 {
			continue
		}
		text := fmt.Sprintf("%s at %s was under way at entry %d and has recorded effects, and nobody can say which of them it had done by then: take an entry before it began",
			act.Name, key.DAD, c.at)
		if i.ResultSeq > 0 {
			text += fmt.Sprintf(", or one from %d on, which has its result", i.ResultSeq)
		}
		return errors.New(text)
	}
	return nil
}
