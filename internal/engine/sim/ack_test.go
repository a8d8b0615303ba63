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
			receipt = (&collation.Row{GUID: row, Request: collation.Request{Turn: h.Turn}}).Answers()
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
	const leg1, response, request = journal.MessageLeg1, journal.MessageResponse, journal.MessageRequest
	row := func(kind journal.MessageKind, changes ...func(*collation.Row)) memstore.Peeked {
		r := &collation.Row{Kind: kind, Request: collation.Request{Turn: 1}, NextAt: 5}
		for _, change := range changes {
			change(r)
		}
		return memstore.Peeked{Row: r}
	}
	with := func(p memstore.Peeked, ledger collation.GUIDLedger, v journal.Verdict) memstore.Peeked {
		p.Receipt = &collation.Receipt{Ledger: ledger, Verdict: v}
		return p
	}
	in := func(p memstore.Peeked, s journal.JobState) memstore.Peeked {
		p.State = s
		return p
	}
	never := func(r *collation.Row) { r.NextAt = collation.Never }
	held := func(r *collation.Row) { r.Held = collation.HeldStuck }
	leased := func(r *collation.Row) { r.Holder = "w" }
	tooOften := func(r *collation.Row) { r.Runs = store.MaxRuns + 1 }
	half, whole := collation.GUIDLedger(10_000_000_001), collation.GUIDLedger(11_000_000_001)
	begun := in(row(journal.MessageStart), journal.JobOpen)
	turned := with(row(journal.MessageAnswer), half, journal.VerdictHandled)
	for name, c := range map[string]struct {
		l    left
		lost bool
		memstore.Peeked
	}{
		"leg1 handled":             {left{kind: leg1}, false, memstore.Peeked{}},
		"leg1 not handled":         {left{kind: leg1}, true, row(leg1)},
		"leg1 left to its row":     {left{kind: leg1, count: 5}, false, row(leg1)},
		"leg1 left to a dead row":  {left{kind: leg1, count: 5}, true, row(leg1, never)},
		"leg1 held":                {left{kind: leg1}, false, row(leg1, held)},
		"of a quarantined job":     {left{kind: leg1}, false, in(row(leg1), journal.JobQuarantined)},
		"leg1 that was held":       {left{kind: leg1, freed: true}, false, row(leg1)},
		"response accepted":        {left{kind: response}, false, with(row(request), whole, journal.VerdictHandled)},
		"response stale":           {left{kind: response}, false, with(row(request), 0, journal.VerdictStale)},
		"response half done":       {left{kind: response}, true, with(row(request), half, journal.VerdictHandled)},
		"response turned the row":  {left{kind: response}, false, turned},
		"response not accepted":    {left{kind: response}, true, row(request)},
		"response of another turn": {left{kind: response, turn: 2}, false, row(request)},
		"request answered":         {left{kind: request, told: true}, false, row(request)},
		"request not answered":     {left{kind: request, count: 9}, true, row(request)},
		"answered, and no timer":   {left{kind: request, told: true}, true, row(request, never)},
		"answered, and held":       {left{kind: request, told: true}, false, row(request, never, leased)},
		"it ran too often":         {left{kind: request}, false, row(request, tooOften)},
		"start, begun elsewhere":   {left{kind: journal.MessageStart, unnamed: true}, false, begun},
		"start, not begun":         {left{kind: journal.MessageStart, unnamed: true}, true, row(journal.MessageStart)},
	} {
		c.l.Peeked, c.l.turn = c.Peeked, max(c.l.turn, 1)
		require.Equal(t, c.lost, c.l.lost() != "", "%s: %q", name, c.l.lost())
	}
}
