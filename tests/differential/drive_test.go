package differential

import (
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/store"
)

// work does what an engine and its workers do: it takes a due row and carries it
// on.
func (p *pair) work() {
	due := p.due()
	if len(due) == 0 {
		p.advance(pick[time.Duration](p, "until", 1, 30, 90, 3600) * second)
		return
	}
	row := due[p.upTo("due", len(due)-1)]
	out := p.claim([]store.Claim{{Row: row, Send: true, Again: pick[time.Duration](p, "again", 0, 1, 60) * second}})
	for i := range out {
		p.carry(&out[i].Row)
	}
}

func (p *pair) carry(r *collation.Row) {
	switch r.Kind {
	case journal.MessageSignal:
		p.deliver([]collation.RowKey{keyOf(r)})
	case journal.MessageRequest:
		p.respond(r)
	case journal.MessageStart:
		if !p.begin(r.Job) {
			p.batch([]*collation.Message{journaltest.Message(r)}, "")
		}
	default:
		p.batch([]*collation.Message{journaltest.Message(r)}, "")
	}
}

// begin begins or refuses the child of an order, where there is one.
func (p *pair) begin(child journal.JobID) bool {
	row, err := both(p, "order", func(_ int, s store.Store) (*collation.Row, error) {
		return journaltest.Driven{Store: s}.Order(p.ctx, child)
	})
	if err != nil {
		return false
	}
	p.orders = append(p.orders, *row)
	p.spawn(row)
	return true
}

func (p *pair) spawn(row *collation.Row) {
	order, err := row.Order()
	require.NoError(p, err)
	f := p.flows[order.Flow+" "+order.Version]
	if order.Version == "" {
		f = p.flows[order.Flow+" 1"]
	}
	if order.Fault != "" || f == nil || p.chance("refuse", 5) {
		var reply *collation.Row
		if order.Parent.Turn > 0 || order.Parent.Awaited {
			r := order.Refusal(row.Job, 404, "not_found", "no such flow", collation.Micros(p.clock), p.mode)
			reply = &r
		}
		_ = p.done("refuse "+order.Key, func(_ int, s store.Store) error { return journaltest.Driven{Store: s}.Refuse(p.ctx, row, reply) })
		return
	}
	var reply *collation.Row
	if !order.Parent.Awaited && order.Parent.Turn > 0 {
		r := order.Outcome(row.Job, success(`{"id":"`+order.Key+`"}`), collation.Micros(p.clock), p.mode)
		reply = &r
	}
	st := p.request(f, order.Key, string(order.Input))
	_ = p.done("spawn "+order.Key, func(_ int, s store.Store) error {
		return journaltest.Driven{Store: s}.Spawn(p.ctx, row, st, reply, p.mode)
	})
}

func (p *pair) request(f *flow.Flow, key, input string) store.Start {
	return store.Start{Flow: ref(f), Trigger: f.Trigger().Name, Key: key, Input: []byte(input)}
}

var errRefused = errors.New("refused")

// side is one store's part of a batch.
type side struct {
	c      store.Committer
	loaded *store.Loaded
	plans  []store.Chained
}

// batch carries messages in one transaction, as the engine does; spoil says how
// the last plan is falsified. It goes on until they are done.
func (p *pair) batch(ms []*collation.Message, spoil string) {
	h := p.hands[p.upTo("hand", len(p.hands)-1)]
	for range 20 {
		done, err := p.transaction(h, ms, spoil)
		if err != nil || done || spoil != "" || p.chance("leave it", 10) {
			return
		}
		for _, m := range ms {
			m.Entered = m.Kind == journal.MessageLeg1
		}
	}
}

func (p *pair) transaction(h *hand, ms []*collation.Message, spoil string) (done bool, err error) {
	wants := make([]store.Want, len(ms))
	for i, m := range ms {
		wants[i] = store.Want{
			Job: m.Job, Receipt: m.GUID, Row: m.Row,
			Instances: []collation.InstanceKey{{Activity: m.Activity, DAD: m.DAD}},
		}
		p.messages = append(p.messages, m)
	}
	sides := [2]*side{{c: h[0]}, {c: h[1]}}
	_, err = both(p, "load", func(i int, _ store.Store) (*store.Loaded, error) {
		l, err := h[i].Load(p.ctx, wants, true)
		sides[i].loaded = l
		return l, err
	})
	if err != nil {
		return true, err
	}
	if p.chance("look", 3) {
		p.busy(h, wants)
	}
	done = true
	for n, m := range ms {
		last := ""
		if n == len(ms)-1 {
			last = spoil
		}
		ended, err := p.decide(sides, m, last)
		if err != nil {
			_ = p.done("rollback", func(i int, _ store.Store) error { return h[i].Rollback(p.ctx) })
			return true, err
		}
		done = done && ended
	}
	if p.chance("roll back", 2) {
		return true, p.done("rollback", func(i int, _ store.Store) error { return h[i].Rollback(p.ctx) })
	}
	return done, p.commit(h, sides, spoil)
}

func (p *pair) commit(h *hand, sides [2]*side, spoil string) error {
	return p.done("commit "+spoil, func(i int, _ store.Store) error {
		err := h[i].Commit(p.ctx, sides[i].plans)
		if spoil != "" && (errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrRejected)) {
			return errRefused // which of the two is not part of the contract for plans against the laws
		}
		return err
	})
}

// busy loads with another committer what this one holds.
func (p *pair) busy(h *hand, wants []store.Want) {
	other := p.hands[0]
	if other == h {
		other = p.hands[1]
	}
	_, _ = both(p, "load of what is held", func(i int, _ store.Store) (*store.Loaded, error) { return other[i].Load(p.ctx, wants, false) })
	_ = p.done("rollback", func(i int, _ store.Store) error { return other[i].Rollback(p.ctx) })
}

// decide plans one message in both stores. It reports whether the message needs no
// other transaction.
func (p *pair) decide(sides [2]*side, m *collation.Message, spoil string) (done bool, err error) {
	if sides[1].loaded.States[m.Job] == nil {
		return true, nil
	}
	var plans [2]*collation.Plan
	trouble := p.trouble()
	_, err = both(p, fmt.Sprintf("plan of %s to %s", m.Kind, m.Activity), func(i int, _ store.Store) (*collation.Plan, error) {
		var err error
		if plans[i], err = p.plan(sides[i], *m); err == nil && trouble != nil {
			plans[i] = trouble(sides[i].loaded.States[m.Job], m, p.mode, errBody)
		}
		return plans[i], err
	})
	if err != nil {
		return true, err
	}
	p.drawn.plan(plans[1])
	for i, s := range sides {
		st := s.loaded.States[m.Job]
		spoils[spoil](plans[i], st)
		s.plans = append(s.plans, store.Chain(&st.Job, plans[i]))
		st.Apply(plans[i])
	}
	return plans[1].Done, nil
}

// trouble draws what an engine makes of a message that it cannot handle: mostly nothing.
func (p *pair) trouble() func(*collation.State, *collation.Message, collation.Mode, error) *collation.Plan {
	switch {
	case p.chance("hold", 2):
		return collation.Hold
	case p.chance("quarantine", 1):
		return collation.Quarantine
	}
	return nil
}

func (p *pair) plan(s *side, m collation.Message) (*collation.Plan, error) {
	st := s.loaded.States[m.Job]
	st.Flow = p.flows[st.Job.Flow.Name+" "+st.Job.Flow.Version]
	if row := st.Rows[m.Row]; row != nil && m.Response == nil && st.Receipts[m.GUID] == nil {
		var err error
		if m.Response, err = journaltest.Carried(row); err != nil {
			return nil, err
		}
	}
	for range 10 {
		plan, need := collation.Step(st, &m, p.mode)
		if need == nil {
			return plan, nil
		}
		if err := s.c.More(p.ctx, map[journal.JobID]*collation.Need{m.Job: need}); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("ten loads did not satisfy Step")
}

func success(output string) *journal.Response {
	return &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: []byte(output)}
}

func failure(kind journal.ResponseKind, class string) *journal.Response {
	return &journal.Response{Kind: kind, Code: collation.CodeInternal, Error: &journal.Failure{Class: class, Message: "drawn"}}
}
