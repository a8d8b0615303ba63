package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Cut is a job as it was at an entry of its main chain, from which another job is to go on, and as
// it is now (O12). Input is the job's input.
type Cut struct {
	Input []byte

	at       int64
	was, now *state
}

// CutAt reads the journal of a job up to its entry at, and all of it. Errors are those of reading:
// store.ErrNotFound among others.
func CutAt(ctx context.Context, r store.Reader, job journal.JobID, at int64) (*Cut, error) {
	c := &Cut{at: at, was: newState(job), now: newState(job)}
	for e, err := range Journal(ctx, r, job) {
		if err != nil {
			return nil, err
		}
		if e.Kind == journal.KindCreated {
			c.Input = e.Input
		}
		if err := c.now.apply(e); err != nil {
			return nil, err
		}
		if e.Chain.IsZero() && e.Seq <= at {
			if err := c.was.apply(e); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// Clean returns nil if what was done before the entry can be told apart from what was done after
// it, once all entries are applied. Otherwise the error says what stands in the way, and which
// entries would do. f is the job's flow.
func (c *Cut) Clean(f *flow.Flow) error {
	if last := c.now.last(); c.at < 1 || c.at > last {
		return fmt.Errorf("there is no entry %d: its journal has the entries 1 to %d", c.at, last)
	}
	for key, i := range c.was.instances {
		act, _ := f.Activity(key.Activity)
		switch {
		case act == nil:
			continue
		case i.repeat && i.Ledger.Leg2Entries() > 0:
			return fmt.Errorf("the hook %s takes signal after signal: what follows them cannot be taken over", act.Name)
		case act.Type != flow.TypeWorker || !i.Ledger.Leg1Complete() || c.ended(key) > 0:
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
	if i := c.now.instances[key]; i != nil {
		seq = i.ResultSeq
	}
	if seq == 0 {
		seq = c.now.others[key]
	}
	if seq > c.at {
		return 0
	}
	return seq
}

// apart refuses an instance with a request that was under way and has recorded effects.
func (c *Cut) apart(act *flow.Activity, key collation.InstanceKey) error {
	i := c.now.instances[key]
	for n := range max(i.Count, 1) {
		if i.Count > 0 && c.ended(elementKey(key, n)) > 0 {
			continue
		}
		if !c.now.chains[journal.DeriveRequest(i.Leg1, n)] {
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
