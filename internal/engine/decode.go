package engine

import (
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// item is one delivery in a batch.
type item struct {
	delivery transport.Delivery
	msg      collation.Message
	epoch    int64   // of the message (T4)
	flow     flowKey // a hint; the job's header is what counts
	plan     *collation.Plan
	loads    int           // its loads in this transaction
	took     time.Duration // by its decision in this transaction
	slow     int           // how often its decision was stopped
	topic    string        // for which its sender may speak; "" for a message of the engine (S2)
	refused  bool          // its response cannot be read, and a failed attempt stands for it
	// reject is set when the store has refused the message's plan for good, or when it cannot be
	// decided.
	reject error
	stop   <-chan struct{} // closed when the engine that fetched it shall stop (T10)
	child  begun           // for the start of a child
}

// decode reads a delivery into a message. An error wraps wire.ErrMalformed, and the message is
// poison (T3).
func decode(d transport.Delivery) (*item, error) {
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
	it := &item{
		delivery: d, epoch: raw.Header.Epoch, flow: flowKey{h.Flow, h.Version}, topic: raw.Header.Topic,
		refused: refused,
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
func (it *item) identify() error {
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
		m.GUID = (&collation.Row{GUID: m.Row, Turn: m.Turn}).Answers()
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

// want lists what the message needs loaded. It is a hint: Step asks for what is missing.
func (it *item) want(flows *Flows, mode collation.Mode) store.Want {
	m := &it.msg
	if m.Kind == journal.MessageSignal {
		return store.Want{Box: m.Job, Signal: m.Row}
	}
	w := store.Want{Job: m.Job, Row: m.Row}
	if m.Activity != "" {
		w.Instances = []collation.InstanceKey{{Activity: m.Activity, DAD: m.DAD}}
	}
	if m.Kind == journal.MessageStart && it.flow == (flowKey{}) { // sent for a child that had not begun
		w.Order, w.Key = m.Job, it.child.key
	}
	if it.reject != nil {
		// Its row will be held. The store may be refusing the entries that a decision reads, so
		// they are not asked for again.
		return w
	}
	w.Receipt = m.GUID
	if f := flows.Named(it.flow.name, it.flow.version); f != nil {
		w.Instances, w.Results = collation.Wants(f, m, mode)
	}
	return w
}

// read takes the message's response from its row (T1), as the row is now. Once the response is
// accepted, its entry has it (1.7).
func (it *item) read(row *collation.Row) error {
	m := &it.msg
	if row == nil || row.Kind != m.Kind {
		return nil
	}
	switch m.Kind {
	case journal.MessageAnswer, journal.MessageWakeUp, journal.MessageOutcome, journal.MessageCycle:
		var err error
		m.Response, err = journal.DecodeResponse(row.Body)
		return err
	}
	return nil
}

// stolen says that the sender of a message speaks for another topic than its own (S2). A worker
// makes no message of the engine, and no response to a request of another topic.
func (it *item) stolen(row *collation.Row) bool {
	return it.topic != "" && (it.msg.Kind != journal.MessageResponse || row != nil && row.Topic != it.topic)
}

// key names the message's dispatch row.
func (it *item) key() collation.RowKey { return collation.RowKey{Job: it.msg.Job, GUID: it.msg.Row} }
