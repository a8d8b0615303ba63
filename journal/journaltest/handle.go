package journaltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Handler handles messages of jobs with a committer, as an engine does, one plan in a commit.
type Handler struct {
	C    store.Committer
	Flow func(journal.FlowRef) *flow.Flow
	Mode collation.Mode
}

// WantOf returns what a message asks to have locked and read.
func WantOf(m *collation.Message) store.Want {
	return store.Want{
		Job: m.Job, Receipt: m.GUID, Row: m.Row,
		Instances: []collation.InstanceKey{{Activity: m.Activity, DAD: m.DAD}},
	}
}

// Load opens a transaction for messages, waiting for their jobs.
func (h Handler) Load(ctx context.Context, ms ...*collation.Message) (*store.Loaded, error) {
	wants := make([]store.Want, len(ms))
	for i, m := range ms {
		wants[i] = WantOf(m)
	}
	l, err := h.C.Load(ctx, wants, true)
	if err != nil {
		return nil, err
	}
	for _, st := range l.States {
		st.Flow = h.Flow(st.Job.Flow)
	}
	return l, nil
}

// Plan steps a message against its loaded state, and loads what that lacks.
func (h Handler) Plan(ctx context.Context, st *collation.State, m *collation.Message) (*collation.Plan, error) {
	if row := st.Rows[m.Row]; row != nil && m.Response == nil && st.Receipts[m.GUID] == nil {
		var err error
		if m.Response, err = carried(row); err != nil {
			return nil, err
		}
	}
	for range 10 {
		p, need := collation.Step(st, m, h.Mode)
		if need == nil {
			return p, nil
		}
		if err := h.C.More(ctx, map[journal.JobID]*collation.Need{m.Job: need}); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("ten loads did not satisfy Step")
}

// carried returns the response in the body of a row, nil for kinds without one.
func carried(row *collation.Row) (*journal.Response, error) {
	switch row.Kind {
	case journal.MessageAnswer, journal.MessageWakeUp, journal.MessageOutcome, journal.MessageCycle:
		return journal.DecodeResponse(row.Body)
	}
	return nil, nil
}

// Once decides and commits one plan of a message.
func (h Handler) Once(ctx context.Context, m *collation.Message) (*collation.Plan, error) {
	l, err := h.Load(ctx, m)
	if err != nil {
		return nil, err
	}
	st := l.States[m.Job]
	if st == nil {
		return nil, errors.Join(fmt.Errorf("job %s was not loaded", m.Job), h.C.Rollback(ctx))
	}
	p, err := h.Plan(ctx, st, m)
	if err != nil {
		return nil, errors.Join(err, h.C.Rollback(ctx))
	}
	return p, h.C.Commit(ctx, []store.Chained{store.Chain(&st.Job, p)})
}

// Handle handles a message to its end: after a lost test-and-set it decides again. It returns the
// last plan.
func (h Handler) Handle(ctx context.Context, m *collation.Message) (*collation.Plan, error) {
	for range 100 {
		p, err := h.Once(ctx, m)
		switch {
		case errors.Is(err, store.ErrLost):
		case err != nil:
			return nil, err
		case p.Done:
			return p, nil
		default:
			m.Entered = m.Kind == journal.MessageLeg1
		}
	}
	return nil, fmt.Errorf("message %s came to no end", m.GUID)
}
