package engine

import (
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/wire"
)

// item is one delivery on its way through a batch.
type item struct {
	delivery transport.Delivery
	msg      collation.Message
	flow     flowKey // a hint; the job's header decides
	plan     *collation.Plan
	// reject is set once the store refused the message's plan for good.
	reject error
}

// decode reads a delivery into a message. Its error wraps wire.ErrMalformed:
// the message is poison (T3).
func decode(d transport.Delivery) (*item, error) {
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	raw := d.Message()
	h, err := wire.Decode[wire.Hint](raw.Body)
	if err != nil {
		return nil, err
	}
	it := &item{delivery: d, flow: flowKey{h.Flow, h.Version}}
	m := &it.msg
	m.Kind, m.Activity, m.Turn = h.Kind, h.Activity, h.Turn
	if m.Job, err = journal.ParseJobID(h.Job); err != nil {
		return nil, fmt.Errorf("%w: job: %w", wire.ErrMalformed, err)
	}
	if m.Row, err = journal.ParseGUID(h.Row); err != nil {
		return nil, fmt.Errorf("%w: row: %w", wire.ErrMalformed, err)
	}
	if m.DAD, err = collation.ParseDAD(h.DAD); err != nil {
		return nil, fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	// Every turn before took a publication: those are no sign of trouble.
	sent := raw.Header.Publication - max(m.Turn-1, 0)
	m.Alone = d.Count() >= collation.AloneFrom || sent >= collation.AloneFrom
	return it, it.identify(h)
}

// identify derives the message's GUID from the row that licenses it (1.4).
func (it *item) identify(h *wire.Hint) error {
	m := &it.msg
	switch m.Kind {
	case journal.MessageStart, journal.MessageLeg1:
		m.GUID = m.Row
	case journal.MessageAnswer:
		m.GUID = (&collation.Row{GUID: m.Row, Turn: m.Turn}).Answers()
	case journal.MessageResponse:
		if h.Response == nil || m.Turn < 1 {
			return fmt.Errorf("%w: a response message without a response or a turn", wire.ErrMalformed)
		}
		r, err := h.Response.Journal()
		if err != nil {
			return err
		}
		m.Response = r
		m.GUID = collation.ResponseGUID(m.Row, m.Turn)
	default:
		return fmt.Errorf("%w: message kind %.40q", wire.ErrMalformed, m.Kind)
	}
	return nil
}

// want is what the message needs loaded.
func (it *item) want(flows *Flows, mode collation.Mode) store.Want {
	m := &it.msg
	if it.reject != nil {
		// Its row is to be held. The entries that a decision reads may be what the
		// store refuses: they are not asked for again.
		return store.Want{Job: m.Job, Row: m.Row, Instances: []collation.InstanceKey{{Activity: m.Activity, DAD: m.DAD}}}
	}
	w := store.Want{Job: m.Job, Receipt: m.GUID, Row: m.Row}
	if f := flows.Cached(it.flow.name, it.flow.version); f != nil {
		w.Instances, w.Results = collation.Wants(f, m, mode)
	} else {
		w.Instances = []collation.InstanceKey{{Activity: m.Activity, DAD: m.DAD}}
	}
	return w
}

// answer reads the response of an answer out of its row (T1).
func (it *item) answer(row *collation.Row) error {
	if it.msg.Kind != journal.MessageAnswer || row == nil || row.Kind != journal.MessageAnswer || it.msg.Response != nil {
		return nil
	}
	r, err := wire.Decode[wire.Response](row.Body)
	if err != nil {
		return err
	}
	it.msg.Response, err = r.Journal()
	return err
}
