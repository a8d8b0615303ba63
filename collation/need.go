package collation

import (
	"errors"
	"slices"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// needError says that a decision misses state. It unwinds up to Step, which returns what is
// missing. A decision has one, its builder's. It collects everything that is not loaded, so
// that one trip loads all of it.
type needError struct{ Need }

func (*needError) Error() string { return "state that the decision needs is not loaded" }

// missing is the need for everything looked at so far; nil if all of it was loaded.
func (b *builder) missing() error {
	if b.need.Empty() {
		return nil
	}
	return &b.need
}

// putOff lets a loop go on after a need, so that one trip loads what all items miss. A caller
// that uses it returns missing at the end.
func putOff(err error) error {
	if need := (*needError)(nil); errors.As(err, &need) {
		return nil
	}
	return err
}

// read gives what was loaded for the key, or asks for it.
func read[K comparable, V any](b *builder, loaded map[K]V, k K, want *[]K) (V, error) {
	v, asked := loaded[k]
	if !asked {
		*want = append(*want, k)
		return v, &b.need
	}
	return v, nil
}

// readOwn is read for what only the job itself changes: a whole state holds all of it.
func readOwn[K comparable, V any](b *builder, loaded map[K]V, k K, want *[]K) (V, error) {
	if b.s.Whole {
		return loaded[k], nil
	}
	return read(b, loaded, k, want)
}

// instance reads the instance as the plan has left it so far, or zero if there is none.
func (b *builder) instance(key InstanceKey) (Instance, error) {
	for i := range b.p.Ledgers {
		if w := &b.p.Ledgers[i]; w.Key == key {
			return Instance{Ledger: w.After, ResultSeq: w.ResultSeq, Code: w.Code, More: w.More}, nil
		}
	}
	if slices.Contains(b.need.Instances, key) {
		return Instance{}, &b.need
	}
	stored, err := readOwn(b, b.s.Instances, key, &b.need.Instances)
	if stored == nil {
		return Instance{}, err
	}
	return *stored, nil
}

// asked reports whether the instance was loaded, or is asked for.
func (b *builder) asked(key InstanceKey) bool {
	_, loaded := b.s.Instances[key]
	return loaded || b.s.Whole || slices.Contains(b.need.Instances, key)
}

// move changes the ledger of an instance.
func (b *builder) move(key InstanceKey, change func(ActivityLedger) (ActivityLedger, error)) error {
	inst, err := b.instance(key)
	if err == nil {
		inst.Ledger, err = change(inst.Ledger)
	}
	if err == nil {
		b.put(key, inst)
	}
	return err
}

// everything asks for every row and wait of the job, and for the starts it sent (C15).
func (b *builder) everything() error {
	if b.s.AllRows {
		return nil
	}
	b.need.AllRows = true
	return &b.need
}

// stands reads a row of the job, or the start of a child; nil if there is none.
func (b *builder) stands(k RowKey) (*Row, error) {
	row, asked := b.s.Rows[k.GUID]
	if !asked && !b.s.AllRows {
		b.need.Rows = append(b.need.Rows, k)
		return nil, &b.need
	}
	return row, nil
}

// waiting reads an open wait of the job; nil if there is none.
func (b *builder) waiting(g journal.GUID) (*Wait, error) {
	if b.s.AllRows {
		return b.s.Waits[g], nil
	}
	return read(b, b.s.Waits, g, &b.need.Waits)
}

// load reads a result. If there is none, it returns one with Ran false.
func (b *builder) load(key InstanceKey) (*flow.Result, error) {
	return orNone(readOwn(b, b.s.Results, key, &b.need.Results))
}

// latest reads the last result of an activity. For the message's own activity that is the
// result it brings, as long as the store does not know it; later another pass may have brought
// a newer one.
func (b *builder) latest(name string) (*flow.Result, error) {
	if b.own != nil && b.act != nil && b.act.Name == name && b.brings() {
		return b.own, nil
	}
	return orNone(read(b, b.s.Latest, name, &b.need.Latest))
}

func orNone(r *flow.Result, err error) (*flow.Result, error) {
	if r == nil && err == nil {
		r = &flow.Result{}
	}
	return r, err
}

// brings reports whether this plan records the result of the message's activity.
func (b *builder) brings() bool {
	w := b.p.Receipt
	return w != nil && !w.Before.Step1() || b.p.Entry.Result != nil || b.p.Entry.Trouble != nil
}

// closed is how the job was closed, by this plan or an earlier one.
func (b *builder) closed() (*journal.Close, error) {
	switch {
	case b.p.Close != nil:
		return b.p.Close, nil
	case b.s.Close != nil:
		return b.s.Close, nil
	}
	b.need.Close = true
	return nil, &b.need
}
