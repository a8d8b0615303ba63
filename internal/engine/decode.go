package engine

import (
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// decode reads a delivery into a message. An error wraps wire.ErrMalformed, and the message is
// poison (T3).
func decode(d transport.Delivery) (*message, error) {
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	raw := d.Message()
	h, response, err := readHint(raw)
	refused := err != nil
	if refused {
		if h, response = failedAttempt(raw, err); h == nil {
			return nil, fmt.Errorf("a message of topic %q, GUID %s, turn %d: %w", raw.Header.Topic, journal.GUID(raw.Header.GUID), raw.Header.Turn, err)
		}
	}
	it := &message{
		delivery: d,
		epoch:    raw.Header.Epoch,
		flow:     flowKey{h.Flow, h.Version},
		topic:    raw.Header.Topic,
		refused:  refused,
		moved:    h.Response != nil && h.Response.Moved,
	}
	m := &it.msg
	m.Kind, m.Activity, m.Turn, m.Response = h.Kind, h.Activity, h.Turn, response
	if m.Job, err = journal.ParseJobID(h.Job); err != nil {
		return nil, fmt.Errorf("%w: job: %w", wire.ErrMalformed, err)
	}
	if m.Row, err = journal.ParseGUID(h.Row); err != nil {
		return nil, fmt.Errorf("%w: row: %w", wire.ErrMalformed, err)
	}
	if m.DAD, err = collation.ParseDAD(h.DAD); err != nil {
		return nil, fmt.Errorf("%w: dad: %w", wire.ErrMalformed, err)
	}
	// Every earlier turn took one publication: these are no sign of trouble.
	sent := raw.Header.Publication - max(m.Turn-1, 0)
	m.Alone = d.Count() >= collation.AloneFrom || sent >= collation.AloneFrom
	it.again, it.holder = d.Count() > 1 || sent > 1, raw.Holder
	return it, it.identify()
}

// readHint reads a message's body, and the response in it, if it has one.
func readHint(raw *transport.Message) (*wire.Hint, *journal.Response, error) {
	h, err := wire.Decode[wire.Hint](raw.Body)
	if err != nil || h.Kind != journal.MessageResponse || h.Response == nil {
		return h, nil, err
	}
	response, err := h.Response.Journal()
	return h, response, err
}

// identify derives the message's GUID from its dispatch row (1.4).
func (it *message) identify() error {
	m := &it.msg
	switch m.Kind {
	case journal.MessageStart, journal.MessageLeg1, journal.MessageWakeUp, journal.MessageOutcome, journal.MessageCycle:
		m.GUID = m.Row
	case journal.MessageSignal, journal.MessageInterrupt:
		if m.Activity != "" || m.DAD != collation.RootDAD {
			return fmt.Errorf("%w: a message of kind %s is addressed to no activity: %.40q at %.40q", wire.ErrMalformed, m.Kind, m.Activity, m.DAD)
		}
		m.GUID = m.Row
	case journal.MessageAnswer:
		m.GUID = (&collation.Row{GUID: m.Row, Request: collation.Request{Turn: m.Turn}}).Answers()
	case journal.MessageResponse:
		if m.Response == nil || m.Turn < 1 {
			return fmt.Errorf("%w: a response message without a response or a turn", wire.ErrMalformed)
		}
		m.GUID = collation.ResponseGUID(m.Row, m.Turn)
	default:
		return fmt.Errorf("%w: message kind %.40q", wire.ErrMalformed, m.Kind)
	}
	return nil
}
