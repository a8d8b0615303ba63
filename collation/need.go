package collation

import (
	"errors"
	"slices"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// needError says that a decision misses state. It unwinds up to Step, which
// returns what is missing. There is one for a decision, its builder's: whatever is
// not loaded is noted there, so that one trip loads all that was looked at.
type needError struct{ Need }

func (*needError) Error() string { return "state that the decision needs is not loaded" }

// missing is the need of all that was looked at so far, nil where it was loaded.
func (b *builder) missing() error {
	if b.need.Empty() {
		return nil
	}
	return &b.need
}

// putOff lets a loop over several items go on after a need, so that one trip loads
// what all of them miss. Whoever puts off ends with missing.
func putOff(err error) error {
	if need := (*needError)(nil); errors.As(err, &need) {
		return nil
	}
	return err
}

// instance reads the instance as the plan has left it so far; one that does not
// exist is zero.
func (b *builder) instance(key InstanceKey) (Instance, error) {
	for i := range b.p.Ledgers {
		if w := &b.p.Ledgers[i]; w.Key == key {
			return Instance{Ledger: w.After, ResultSeq: w.ResultSeq, Code: w.Code, More: w.More}, nil
		}
	}
	stored, asked := b.s.Instances[key]
	switch {
	case !asked && !slices.Contains(b.need.Instances, key):
		b.need.Instances = append(b.need.Instances, key)
		return Instance{}, &b.need
	case !asked:
		return Instance{}, &b.need
	case stored == nil:
		return Instance{}, nil
	}
	return *stored, nil
}

// asked reports whether the instance was loaded, or is asked for.
func (b *builder) asked(key InstanceKey) bool {
	_, loaded := b.s.Instances[key]
	return loaded || slices.Contains(b.need.Instances, key)
}

// everything needs every row and wait of the job, and what they order (C15).
func (b *builder) everything() error {
	if !b.s.AllRows {
		b.need.AllRows = true
		return &b.need
	}
	return nil
}

// stands gives a row of the job, or the start of a child; nil where none stands.
func (b *builder) stands(k RowKey) (*Row, error) {
	row, asked := b.s.Rows[k.GUID]
	if !asked && !b.s.AllRows {
		b.need.Rows = append(b.need.Rows, k)
		return nil, &b.need
	}
	return row, nil
}

// waiting gives an open wait of the job; nil where none stands.
func (b *builder) waiting(g journal.GUID) (*Wait, error) {
	w, asked := b.s.Waits[g]
	if !asked && !b.s.AllRows {
		b.need.Waits = append(b.need.Waits, g)
		return nil, &b.need
	}
	return w, nil
}

// load gives a result; of what has none, one that did not run.
func (b *builder) load(key InstanceKey) (*flow.Result, error) {
	r, asked := b.s.Results[key]
	if !asked {
		b.need.Results = append(b.need.Results, key)
		return nil, &b.need
	}
	return orNone(r), nil
}

// latest gives the last result of an activity. That of the message's own activity
// is the one that it brings, while the store does not know it yet: afterwards
// another pass may have brought a later one.
func (b *builder) latest(name string) (*flow.Result, error) {
	if b.own != nil && b.act != nil && b.act.Name == name && b.brings() {
		return b.own, nil
	}
	r, asked := b.s.Latest[name]
	if !asked {
		b.need.Latest = append(b.need.Latest, name)
		return nil, &b.need
	}
	return orNone(r), nil
}

func orNone(r *flow.Result) *flow.Result {
	if r == nil {
		return &flow.Result{}
	}
	return r
}

// brings reports whether this plan records the result of the message's activity.
func (b *builder) brings() bool {
	w := b.p.Receipt
	return w != nil && !w.Before.Step1() || b.p.Entry.Result != nil || b.p.Entry.Trouble != nil
}

// unfinished says whether an effect of the request has a start and no end.
func (b *builder) unfinished(request journal.GUID) (bool, error) {
	open, asked := b.s.Unfinished[request]
	if !asked {
		b.need.Effects = append(b.need.Effects, request)
		return false, &b.need
	}
	return open, nil
}

// named gives the job that has the key, zero where none has it.
func (b *builder) named(key string) (journal.JobID, error) {
	job, asked := b.s.Keys[key]
	if !asked {
		b.need.Keys = append(b.need.Keys, key)
		return journal.JobID{}, &b.need
	}
	return job, nil
}

// closed is how the job was closed, by this plan or by one before.
func (b *builder) closed() (*journal.Close, error) {
	c := b.p.Close
	if c == nil {
		c = b.s.Close
	}
	if c == nil {
		b.need.Close = true
		return nil, &b.need
	}
	return c, nil
}
