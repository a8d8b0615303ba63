package sim

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// acks checks every ack against the state of its message (I8).
type acks struct {
	amu     sync.Mutex
	told    map[journal.GUID]bool // responses that the bus has acknowledged
	letters map[string]bool       // bodies of messages that have a dead letter without a row
	freed   map[journal.GUID]bool // rows that were held and then released by an operator or a wait
}

func (a *acks) init() {
	a.told, a.letters, a.freed = map[journal.GUID]bool{}, map[string]bool{}, map[journal.GUID]bool{}
}

// frees records that an operator may release a row.
func (a *acks) frees(row journal.GUID) {
	a.amu.Lock()
	defer a.amu.Unlock()
	a.freed[row] = true
}

// tells wraps the callback for the PubAcks of responses.
func (a *acks) tells(msgs []transport.Message, done func(int, error)) func(int, error) {
	if done == nil {
		return nil
	}
	return func(i int, err error) {
		if err == nil {
			a.amu.Lock()
			a.told[msgs[i].Header.GUID] = true
			a.amu.Unlock()
		}
		done(i, err)
	}
}

// keeps records signals that a commit has kept: a wait may make one due again at any time.
func (a *acks) keeps(p *collation.Plan) {
	for i := range p.Update {
		if r := &p.Update[i]; r.Held == collation.HeldKept {
			a.frees(r.GUID)
		}
	}
}

// lettered records the dead letters of messages without a row.
func (a *acks) lettered(plans []store.Chained) {
	a.amu.Lock()
	defer a.amu.Unlock()
	for i := range plans {
		for _, d := range plans[i].Plan.Dead {
			if d.Raw != nil {
				a.letters[string(d.Raw)] = true
			}
		}
	}
}

// ends is called before a delivery is acked or rejected: by then everything that it needs must be
// committed.
func (w *world) ends(d *delivery, word string) {
	if word != "ack" && word != "term" || d.c.p.gone() {
		return
	}
	w.acks.amu.Lock()
	defer w.acks.amu.Unlock()
	if w.letters[string(d.msg.Body)] {
		return
	}
	why := "it was terminated without a dead letter"
	if word == "ack" {
		l, err := w.leftOf(d)
		if why = fmt.Sprint(err); err == nil {
			why = l.lost()
		}
		if err == nil && l.Row != nil && w.letters[string(l.Row.Body)] {
			why = "" // compensations that cannot begin: their row sends them again each time
		}
	}
	if why != "" {
		w.wrong("I8: %s of %s to %s (%s), delivered %d times: %s", word, d.name, d.msg.To, d.msg.ID(), d.Count(), why)
	}
}

// left is what remains of a message when it is acked.
type left struct {
	memstore.Peeked
	kind    journal.MessageKind
	turn    int
	count   int  // of deliveries
	told    bool // for a request: the bus has a response to this turn
	unnamed bool // a start that was sent before its job began
	freed   bool // its row was held, and released by an operator, or by a wait
}

func (w *world) leftOf(d *delivery) (*left, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	l := &left{count: d.Count()}
	var job journal.JobID
	var row, receipt journal.GUID
	if d.msg.To.Kind == transport.Work {
		q, err := wire.Decode[wire.Request](d.msg.Body)
		if err != nil {
			return nil, err
		}
		if job, err = journal.ParseJobID(q.Job); err != nil {
			return nil, err
		}
		row = journal.GUID(d.msg.Header.GUID)
		l.kind, l.turn, l.told = journal.MessageRequest, q.Turn, w.told[collation.ResponseGUID(row, q.Turn)]
	} else {
		h, err := wire.Decode[wire.Hint](d.msg.Body)
		if err != nil {
			return nil, err
		}
		if job, err = journal.ParseJobID(h.Job); err != nil {
			return nil, err
		}
		if row, err = journal.ParseGUID(h.Row); err != nil {
			return nil, err
		}
		l.kind, l.turn, l.unnamed = h.Kind, h.Turn, h.Flow == ""
		switch receipt = row; h.Kind {
		case journal.MessageResponse:
			receipt = collation.ResponseGUID(row, h.Turn)
		case journal.MessageAnswer:
			receipt = (&collation.Row{GUID: row, Turn: h.Turn}).Answers()
		}
	}
	l.Peeked, l.freed = w.store.Peek(job, row, receipt), w.freed[row]
	return l, nil
}

// leftTimes is the number of deliveries after which the engine leaves a message that must wait
// for another to its row.
const leftTimes = 5

// lost says why the message must not be acked, "" if it may be. It may be if its marker or stale
// verdict has committed, or its row is gone, was turned, or is held for a person. If its row
// still has a due time, whatever continues the message must exist.
func (l *left) lost() string {
	r := l.Row
	switch {
	case l.State == journal.JobQuarantined, l.State == journal.JobExpired:
		return ""
	case l.Receipt != nil && (l.Receipt.Verdict == journal.VerdictStale || l.Receipt.Ledger.Complete()):
		return ""
	case r == nil, r.Held != "", r.Turn != l.turn, r.Kind != l.rowKind():
		return ""
	case r.NextAt == collation.Never && r.Holder == "": // a holder would continue it (W8)
		return "its row stands, and nothing sends it again"
	case l.freed, l.kind == journal.MessageRequest && l.told:
		return "" // it had a dead letter or a mailbox row; or the bus has the response
	case l.count >= leftTimes && l.kind != journal.MessageRequest,
		l.kind == journal.MessageStart && l.unnamed && l.State != "":
		return ""
	case l.kind == journal.MessageRequest && r.Runs > store.MaxRuns:
		return "" // it ran too often, and is due for an engine, which holds it
	case l.kind == journal.MessageRequest:
		return "its row stands in this turn, and the bus has no response"
	case l.Receipt != nil:
		return "steps are left of it: " + l.Receipt.Ledger.String()
	}
	return "its row stands, and nothing of it has committed"
}

// rowKind returns the kind of the row of the message.
func (l *left) rowKind() journal.MessageKind {
	if l.kind == journal.MessageResponse {
		return journal.MessageRequest
	}
	return l.kind
}

// I8 can fail: each line is a state of a message, and whether an ack would be too early.
func TestI8SaysWhatIsLost(t *testing.T) {
	t.Parallel()
	row := func(kind journal.MessageKind, change func(*collation.Row)) *collation.Row {
		r := &collation.Row{Kind: kind, Turn: 1, NextAt: 5}
		if change != nil {
			change(r)
		}
		return r
	}
	leg1, request := row(journal.MessageLeg1, nil), row(journal.MessageRequest, nil)
	half := &collation.Receipt{Ledger: 10_000_000_001, Verdict: journal.VerdictHandled}
	whole := &collation.Receipt{Ledger: 11_000_000_001, Verdict: journal.VerdictHandled}
	for name, c := range map[string]struct {
		l    left
		lost bool
	}{
		"leg1 handled":             {left{kind: journal.MessageLeg1, turn: 1}, false},
		"leg1 not handled":         {left{kind: journal.MessageLeg1, turn: 1, Peeked: memstore.Peeked{Row: leg1}}, true},
		"leg1 left to its row":     {left{kind: journal.MessageLeg1, turn: 1, count: 5, Peeked: memstore.Peeked{Row: leg1}}, false},
		"leg1 left to a dead row":  {left{kind: journal.MessageLeg1, turn: 1, count: 5, Peeked: memstore.Peeked{Row: row(journal.MessageLeg1, func(r *collation.Row) { r.NextAt = collation.Never })}}, true},
		"leg1 held":                {left{kind: journal.MessageLeg1, turn: 1, Peeked: memstore.Peeked{Row: row(journal.MessageLeg1, func(r *collation.Row) { r.Held = collation.HeldStuck })}}, false},
		"of a quarantined job":     {left{kind: journal.MessageLeg1, turn: 1, Peeked: memstore.Peeked{State: journal.JobQuarantined, Row: leg1}}, false},
		"leg1 that was held":       {left{kind: journal.MessageLeg1, turn: 1, freed: true, Peeked: memstore.Peeked{Row: leg1}}, false},
		"response accepted":        {left{kind: journal.MessageResponse, turn: 1, Peeked: memstore.Peeked{Row: request, Receipt: whole}}, false},
		"response stale":           {left{kind: journal.MessageResponse, turn: 1, Peeked: memstore.Peeked{Row: request, Receipt: &collation.Receipt{Verdict: journal.VerdictStale}}}, false},
		"response half done":       {left{kind: journal.MessageResponse, turn: 1, Peeked: memstore.Peeked{Row: request, Receipt: half}}, true},
		"response turned the row":  {left{kind: journal.MessageResponse, turn: 1, Peeked: memstore.Peeked{Row: row(journal.MessageAnswer, nil), Receipt: half}}, false},
		"response not accepted":    {left{kind: journal.MessageResponse, turn: 1, Peeked: memstore.Peeked{Row: request}}, true},
		"response of another turn": {left{kind: journal.MessageResponse, turn: 2, Peeked: memstore.Peeked{Row: request}}, false},
		"request answered":         {left{kind: journal.MessageRequest, turn: 1, told: true, Peeked: memstore.Peeked{Row: request}}, false},
		"request not answered":     {left{kind: journal.MessageRequest, turn: 1, count: 9, Peeked: memstore.Peeked{Row: request}}, true},
		"answered, and no timer":   {left{kind: journal.MessageRequest, turn: 1, told: true, Peeked: memstore.Peeked{Row: row(journal.MessageRequest, func(r *collation.Row) { r.NextAt = collation.Never })}}, true},
		"answered, and held":       {left{kind: journal.MessageRequest, turn: 1, told: true, Peeked: memstore.Peeked{Row: row(journal.MessageRequest, func(r *collation.Row) { r.NextAt, r.Holder = collation.Never, "w" })}}, false},
		"it ran too often":         {left{kind: journal.MessageRequest, turn: 1, Peeked: memstore.Peeked{Row: row(journal.MessageRequest, func(r *collation.Row) { r.Runs = store.MaxRuns + 1 })}}, false},
		"start, begun elsewhere":   {left{kind: journal.MessageStart, turn: 1, unnamed: true, Peeked: memstore.Peeked{State: journal.JobOpen, Row: row(journal.MessageStart, nil)}}, false},
		"start, not begun":         {left{kind: journal.MessageStart, turn: 1, unnamed: true, Peeked: memstore.Peeked{Row: row(journal.MessageStart, nil)}}, true},
	} {
		require.Equal(t, c.lost, c.l.lost() != "", "%s: %q", name, c.l.lost())
	}
}
