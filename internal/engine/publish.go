package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
)

// Publisher turns dispatch rows into messages (T4, T7).
type Publisher struct {
	Bus   transport.Bus
	Flows *Flows
	Space string
	Lanes int
	Epoch atomic.Int64 // of the space (T4); it rises when another database is accepted (S13)
	// Observer names the spans under which handlers work.
	Observer observer.Observer

	refused refusals
}

// Origin is the commit that a message comes from: a committer's session and its local seq (L1).
// It is zero for starters and for the sweeper.
type Origin struct {
	Session journal.GUID
	Seq     int64
}

// Publish hands the rows to the bus without waiting for PubAcks. A row whose message is lost
// sends it again (T2), and that of one that the bus refuses says so (T5). Rows that cannot be
// published are in the error; they delay no others.
func (p *Publisher) Publish(ctx context.Context, out []store.Outgoing, from Origin) error {
	return p.publish(ctx, out, from, nil)
}

// publish is Publish; done, if not nil, gets the bus's answer for each message.
func (p *Publisher) publish(ctx context.Context, out []store.Outgoing, from Origin, done func(i int, err error)) error {
	msgs := make([]transport.Message, 0, len(out))
	var faults []error
	var at []int // the row of each message, if some have none
	for i := range out {
		m, err := p.message(ctx, &out[i])
		if err != nil {
			if at == nil {
				at = make([]int, i, len(out))
				for n := range at {
					at[n] = n
				}
			}
			faults = append(faults, fmt.Errorf("row %s: %w", out[i].Row.GUID, err))
			continue // the others are still sent
		}
		if at != nil {
			at = append(at, i)
		}
		m.Header.OriginSession, m.Header.OriginSeq = from.Session, from.Seq
		msgs = append(msgs, m)
	}
	if len(msgs) == 0 {
		return errors.Join(faults...)
	}
	if done == nil {
		done = p.watch(msgs, out, at)
	}
	if err := p.Bus.Send(ctx, msgs, done); err != nil {
		faults = append(faults, fmt.Errorf("publish %d messages: %w", len(msgs), err))
	}
	return errors.Join(faults...)
}

func (p *Publisher) message(ctx context.Context, o *store.Outgoing) (transport.Message, error) {
	r := &o.Row
	m := transport.Message{Kind: r.Kind, Header: transport.Header{
		GUID: r.GUID, Publication: r.Publication, Turn: r.Turn, Epoch: p.Epoch.Load(),
		PublishedAt: int64(r.PublishedAt), Traceparent: o.Trace,
	}}
	if r.Kind == journal.MessageRequest {
		return m, p.request(ctx, o, &m)
	}
	m.To = p.destination(r)
	m.Body = wire.Encode(&wire.Hint{
		Kind: r.Kind, Job: r.Job.String(), Row: r.GUID.String(), Activity: r.Activity, DAD: string(r.DAD),
		Turn: r.Turn, Flow: o.Flow.Name, Version: o.Flow.Version,
	})
	return m, nil
}

func (p *Publisher) destination(r *collation.Row) transport.Destination {
	switch r.Kind {
	case journal.MessageStart:
		return transport.ToStart()
	case journal.MessageRequest:
		return transport.ToWork(r.Topic)
	default:
		return transport.ToLane(wire.LaneOf(r.Job, p.Lanes))
	}
}

func (p *Publisher) request(ctx context.Context, o *store.Outgoing, m *transport.Message) error {
	f, err := p.Flows.Get(ctx, o.Flow)
	if err != nil {
		return err
	}
	r := &o.Row
	act, ok := f.Activity(r.Activity)
	if !ok {
		return fmt.Errorf("flow %s version %s has no activity %q", o.Flow.Name, o.Flow.Version, r.Activity)
	}
	q := wire.Request{
		Space: p.Space, Job: r.Job.String(), Key: o.JobKey, Generation: o.Generation,
		Flow: o.Flow.Name, Version: o.Flow.Version, Activity: r.Activity, DAD: string(r.DAD), Element: r.Element,
		Topic: r.Topic, Request: r.GUID.String(), Turn: r.Turn, Attempt: r.Attempt, Attempts: act.Retry.Attempts,
		Fence: r.Fence, TimeoutMS: act.Timeout.Milliseconds(),
		Trace: p.Observer.Under(observer.Message{Job: r.Job, Traceparent: o.Trace, GUID: r.GUID}, r.Turn),
	}
	m.Header.Traceparent = q.Trace
	if !o.Root.IsZero() {
		q.Root, q.RootGeneration = o.Root.String(), o.RootGeneration
	}
	if len(r.Body) <= wire.Inline(p.Bus.MaxPayload()) {
		q.Input = r.Body
	}
	m.To = transport.ToWork(r.Topic)
	m.Body = wire.Encode(&q)
	if o.Taken {
		m.Holder = r.Holder
	}
	return nil
}
