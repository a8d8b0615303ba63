package inspect

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Tell makes the events of entries, of which some may be missing.
func Tell(f *flow.Flow, beside func(journal.Digest) ([]byte, error), entries []*journal.Entry) []view.Event {
	s := newState(journal.JobID{})
	t := newTeller(f, beside, s)
	for _, e := range entries {
		if e.Chain.IsZero() {
			s.follow(e)
		} else {
			s.release(e)
		}
		t.add(e)
	}
	return t.events()
}

// Found is found.
var Found = found

// Past is a job as its entries tell it.
func Past(now *store.JobView, entries []*journal.Entry) (*view.Job, error) {
	f := &fold{state: newState(now.ID)}
	for _, e := range entries {
		if err := f.state.apply(e); err != nil {
			return nil, err
		}
	}
	return Describe(f.view(now)), nil
}
