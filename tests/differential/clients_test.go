package differential

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/store"
)

func (p *pair) start() {
	var list []store.Start
	for range 1 + p.upTo("more", 5)/4 {
		f := pick(p, "flow", p.main...)
		list = append(list, p.request(f, pick(p, "key", "k0", "k1", "k2", "fixed"), fmt.Sprintf(`{"n":%d}`, p.upTo("n", 1))))
	}
	_, _ = both(p, fmt.Sprint("start of ", list[0].Key), func(_ int, s store.Store) ([]store.Started, error) {
		out, err := journaltest.Driven{Store: s}.Start(p.ctx, list, p.mode)
		for i := range out {
			if out[i].Err != nil {
				out[i].Err = fmt.Errorf("%s", kind(out[i].Err)) //nolint:err113 // its kind is what is compared
			}
		}
		return out, err
	})
}

func (p *pair) signal() {
	x, ok := recent(p, "a signal", p.signals)
	if !ok || !p.chance("again", 20) {
		x = collation.Signal{
			Topic: "bell", Key: pick(p, "key", "a", "b"), Code: pick(p, "code", 200, 200, 202, 409), All: p.chance("all", 15),
			Payload: json.RawMessage(fmt.Sprint(p.upTo("payload", 3))), Keep: pick(p, "keep", collation.Micros(0), 60_000_000),
		}
		x.GUID = collation.SignalGUID(space, x.Topic, x.Key, fmt.Sprint(len(p.signals)))
		p.signals = append(p.signals, x)
	}
	_, _ = both(p, "signal "+x.Key, func(_ int, s store.Store) (store.Signalled, error) {
		mine := x
		out, err := journaltest.Driven{Store: s}.Signal(p.ctx, &mine, p.mode)
		slices.SortFunc(out.Out, byRow)
		return out, err
	})
}

func byRow(a, b store.Outgoing) int {
	return strings.Compare(a.Row.Job.String()+a.Row.GUID.String(), b.Row.Job.String()+b.Row.GUID.String())
}

func (p *pair) deliver(keys []collation.RowKey) {
	_, _ = both(p, "deliver", func(_ int, s store.Store) ([]store.Outgoing, error) {
		out, err := journaltest.Driven{Store: s}.Deliver(p.ctx, keys, p.mode)
		slices.SortFunc(out, byRow)
		return out, err
	})
}

// due lists what is due, as a set: what is due at the same time has no order.
func (p *pair) due() []store.DueRow {
	type answer struct {
		Rows []store.DueRow
		Late time.Duration
	}
	out, err := both(p, "due", func(_ int, s store.Store) (answer, error) {
		rows, late, err := s.Due(p.ctx, store.MaxSweep)
		slices.SortFunc(rows, func(a, b store.DueRow) int {
			return strings.Compare(a.Job.String()+a.GUID.String(), b.Job.String()+b.GUID.String())
		})
		return answer{rows, late}, err
	})
	require.NoError(p, err)
	return out.Rows
}

func (p *pair) claim(claims []store.Claim) []store.Outgoing {
	p.claims = append(p.claims, claims...)
	out, _ := both(p, "claim", func(_ int, s store.Store) ([]store.Outgoing, error) {
		out, err := s.Claim(p.ctx, claims)
		slices.SortFunc(out, byRow)
		return out, err
	})
	return out
}

// sweep is what an engine does from time to time.
func (p *pair) sweep() {
	limit := pick(p, "limit", 1000, 1, 3)
	count := func(what string, call func(s store.Store) (int, error)) {
		_, _ = both(p, what, func(_ int, s store.Store) (int, error) { return call(s) })
	}
	switch p.upTo("sweep", 7) {
	case 0, 1:
		count("turn overdue", func(s store.Store) (int, error) { return journaltest.Driven{Store: s}.TurnOverdue(p.ctx, 1000) })
	case 2:
		count("expire signals", func(s store.Store) (int, error) { return journaltest.Driven{Store: s}.ExpireSignals(p.ctx, 1000) })
	case 3:
		_ = p.done("prune", func(_ int, s store.Store) error { // how many markers a store needs is its own affair
			_, err := s.Prune(p.ctx, 1000)
			return err
		})
	case 4, 5:
		for range 200 {
			more, err := both(p, "expire", func(_ int, s store.Store) (bool, error) { return s.Expire(p.ctx, max(limit, 1000)) })
			if err != nil || !more {
				break
			}
		}
	case 6:
		keys := p.keys()
		_ = p.done("discard", func(_ int, s store.Store) error { return journaltest.Driven{Store: s}.Discard(p.ctx, keys) })
	case 7:
		due := p.due()
		var claims []store.Claim
		for i := range due {
			claims = append(claims, store.Claim{Row: due[i], Send: p.chance("send", 60), Again: pick[time.Duration](p, "again", 0, 1, 60) * second})
		}
		p.claim(claims)
	}
}

// keys are those of rows that are, were, or never were there.
func (p *pair) keys() []collation.RowKey {
	var out []collation.RowKey
	for range 1 + p.upTo("keys", 2) {
		k := collation.RowKey{Job: journal.JobID{8: 9}, GUID: journal.GUID{8: 9}}
		if m, ok := recent(p, "message", p.messages); ok && p.chance("of a message", 50) {
			k = collation.RowKey{Job: m.Job, GUID: m.Row}
		} else if d := p.due(); len(d) > 0 {
			k = collation.RowKey{Job: d[0].Job, GUID: d[0].GUID}
		}
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// again repeats something that was done before, as lost answers and redelivered
// messages do.
func (p *pair) again() {
	switch p.upTo("again", 6) {
	case 0, 1, 2:
		if m, ok := recent(p, "message", p.messages); ok {
			again := *m
			again.Entered, again.Alone = false, p.chance("alone", 20)
			p.batch([]*collation.Message{&again}, p.spoil())
		}
	case 3:
		if c, ok := recent(p, "claim", p.claims); ok {
			p.claim([]store.Claim{c})
		}
	case 4:
		if r, ok := recent(p, "order", p.orders); ok {
			p.spawn(&r)
		}
	case 5:
		p.deliver(p.keys())
	case 6:
		if r, ok := recent(p, "interrupt", p.stops); ok {
			p.interrupt(r)
		}
	}
}

// several carries messages of several rows in one transaction.
func (p *pair) several() {
	var ms []*collation.Message
	rows := p.rows("")
	for range 1 + p.upTo("messages", 3) {
		r, ok := recent(p, "row", rows)
		if !ok || r.Job == (journal.JobID{}) {
			return
		}
		m := journaltest.Message(&r)
		if r.Kind == journal.MessageRequest {
			m = journaltest.Response(&r, p.response(&r))
		}
		if !slices.ContainsFunc(ms, func(x *collation.Message) bool { return x.GUID == m.GUID }) {
			ms = append(ms, m)
		}
	}
	p.batch(ms, p.spoil())
}

func (p *pair) stop() {
	views := p.views()
	if len(views) == 0 {
		return
	}
	target := views[p.upTo("target", len(views)-1)].ID
	if p.chance("nobody", 5) {
		target = journal.JobID{8: 7}
	}
	o := collation.InterruptOrder{Code: 410, Reason: "drawn", Throw: p.chance("throw", 70), Descend: p.chance("descend", 50)}
	row, err := o.Row(collation.AskedInterruptGUID(fmt.Sprint(len(p.stops)/2), target), target, collation.Micros(p.clock))
	require.NoError(p, err)
	p.stops = append(p.stops, row)
	p.interrupt(row)
}

func (p *pair) interrupt(row collation.Row) {
	type answer struct {
		Out   *store.Outgoing
		Fresh bool
	}
	_, _ = both(p, "interrupt", func(_ int, s store.Store) (answer, error) {
		out, fresh, err := journaltest.Driven{Store: s}.Interrupt(p.ctx, row, p.mode)
		return answer{out, fresh}, err
	})
}

// letters lists the dead letters; ids are given anew, since a database leaves gaps.
func (p *pair) letters() (ids [2][]int64, list []store.DeadView) {
	list, err := both(p, "letters", func(i int, s store.Store) ([]store.DeadView, error) {
		out, err := s.DeadLetters(p.ctx, true, 1000)
		for n := range out {
			ids[i] = append(ids[i], out[n].ID)
			out[n].ID = int64(n)
		}
		return out, err
	})
	require.NoError(p, err)
	return ids, list
}

// operate is an operator's call.
func (p *pair) operate() {
	if p.chance("foreign", 15) {
		d := collation.DeadLetter{Kind: journal.MessageLeg1, Reason: "undecodable", Message: "drawn"}
		_ = p.done("dead letter", func(_ int, s store.Store) error {
			return journaltest.Driven{Store: s}.DeadLetter(p.ctx, d, []byte{0, 0xff})
		})
	}
	ids, list := p.letters()
	a := store.Action{Who: "ann", Reason: "drawn"}
	at := -1
	if len(list) > 0 && !p.chance("no letter", 5) {
		at = p.upTo("letter", len(list)-1)
	}
	switch p.upTo("action", 6) {
	case 0, 1:
		a.Retry = true
	case 2:
		a.Done = []byte(pick(p, "done", `1`, `null`, `{ }`))
	case 3, 4:
		a.Response = success(`"by hand"`)
	case 5:
		a.Response = failure(journal.ResponseTerminal, "fatal")
	case 6:
		a.Retry, a.Response = p.chance("two", 50), success(`1`)
	}
	if e, ok := recent(p, "of effect", p.effects); ok && a.Response == nil && p.chance("named", 50) {
		a.Effect = e.Key
	}
	_ = p.done("act "+a.Name(), func(i int, s store.Store) error {
		mine := a
		mine.ID = 1 << 40
		if at >= 0 {
			mine.ID = ids[i][at]
		}
		return journaltest.Driven{Store: s}.Act(p.ctx, mine)
	})
}
