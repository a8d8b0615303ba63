package engine

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
)

// A response of a run in this process may bring the outcome of the run's last effect: one transaction
// records both, the outcome first (J8). It is decided on what the cache has of the job and of the
// chain. In every other case, and if the commit fails, it goes back to its run, which then records one
// after the other. So nothing here waits for a database, and nothing has to be loaded.

// completionOf is what a response brings; nil: nothing.
func completionOf(d transport.Delivery) *store.Completion {
	if x, is := d.(interface{ Completion() *store.Completion }); is {
		return x.Completion()
	}
	return nil
}

// bringing reads a response that brings an outcome. One that is not to be handled at once goes back,
// with what the run's own calls find out.
func (l *loop) bringing(d fetched, x *store.Completion) *message {
	m, err := decode(d.Delivery)
	if err != nil || m.refused || m.epoch != l.epoch() || m.stolen(nil) || m.msg.Alone {
		_ = d.Nak(0)
		return nil
	}
	m.stop, m.outcome = d.stop, finish(&x.Lease, x.Effect, false)
	return m
}

// joins decides the outcome that a response brings, on the state that the response is decided on. nil:
// the response goes back.
func (b *batch) joins(st *collation.State, m *message) *collation.Plan {
	x, row := m.outcome, st.Rows[m.msg.Row]
	chain := b.cache.takeChain(x.of.Key())
	if chain == nil && row != nil && row.Effects.Seq == 0 { // its first effect needs no start
		chain = st.Chain(row)
	}
	if chain == nil || row == nil || row.Holder != x.of.Holder || row.Rev != chain.Row.Rev {
		return nil
	}
	chain.Now = st.Now
	out, err := x.decide(chain, b.mode)
	if err != nil || out.Plan == nil || out.Plan.Chain.Resolve || out.Plan.Session != 0 {
		return nil
	}
	after := *row
	chain.Beside(out.Plan, &after)
	st.Rows[row.GUID], x.out = &after, out
	return out.Plan
}

// sendBack gives the responses with an outcome that were not decided to their runs.
func (b *batch) sendBack() {
	for _, d := range b.decisions {
		if m, is := d.item.(*message); is && m.outcome != nil && d.fate == fatePending {
			d.fate, m.end = fateCommit, endApart
		}
	}
}

// told tells the run that its outcome is recorded.
func (m *message) told() {
	if m.outcome != nil {
		completionOf(m.delivery).Told(m.outcome.out.EffectRow, nil)
	}
}
