package inspect

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// messages gathers what entries tell of the messages of a job (1.3, J10), in the order in which they
// first name them. The state is that after the entry.
type messages struct {
	state *state
	list  []view.Message
	place map[journal.GUID]int // in list
	// leaves has the messages that were sent to other jobs, or to mailboxes.
	leaves map[journal.GUID]bool
}

func newMessages(s *state) *messages {
	return &messages{state: s, place: map[journal.GUID]int{}, leaves: map[journal.GUID]bool{}}
}

// message returns the message of that GUID, and makes it if it is new.
func (f *messages) message(g journal.GUID, kind journal.MessageKind, activity, address string) *view.Message {
	at, known := f.place[g]
	if !known {
		at = len(f.list)
		f.place[g] = at
		f.list = append(f.list, view.Message{GUID: g})
	}
	m := &f.list[at]
	if m.Kind == "" {
		m.Kind = kind
	}
	if m.Activity == "" {
		m.Activity, m.Address = activity, address
	}
	return m
}

// add adds what an entry did with its message, and what it dispatched.
func (f *messages) add(e *journal.Entry) {
	if !handles(e.Kind) {
		return
	}
	f.accept(e)
	folded := map[journal.GUID]bool{}
	for i := range e.Dispatched {
		d := &e.Dispatched[i]
		f.dispatch(e, f.sender(e, d.GUID, folded), d)
		folded[d.GUID] = d.Folded != 0
	}
	if e.Elements == nil {
		return
	}
	for n := range e.Elements.Count { // their GUIDs follow from that of the Leg1, which never folds (C8)
		guid := collation.RequestGUID(e.GUID, n)
		f.dispatch(e, e.GUID, &journal.Dispatched{
			GUID: guid, Kind: journal.MessageRequest, Activity: e.Activity, DAD: e.DAD,
		})
		f.message(guid, "", "", "").Element = &n
	}
}

// handles reports whether an entry of the kind handles a message of its job.
func handles(k journal.Kind) bool {
	switch k {
	case journal.KindCreated, journal.KindLeg1, journal.KindLeg2, journal.KindStale, journal.KindInterrupt,
		journal.KindSignal:
		return true
	}
	return false
}

// accept notes the entry of a message.
func (f *messages) accept(e *journal.Entry) {
	kind := journal.MessageLeg1
	if e.Kind == journal.KindCreated {
		kind = journal.MessageStart
	}
	receipt := f.state.receipts[e.GUID]
	if receipt != nil && receipt.message != "" {
		kind = receipt.message
	}
	m := f.message(e.GUID, kind, e.Activity, e.DAD)
	if m.Accepted == 0 {
		m.Accepted, m.Verdict = e.Seq, view.Handled
	}
	m.Last = e.Seq
	if receipt != nil {
		ledger := journal.Ledger(receipt.ledger)
		m.Verdict, m.Ordinal = view.Verdict(receipt.verdict), receipt.ledger.Ordinal()
		m.Ledger, m.Says = &ledger, saysMessage(receipt.ledger)
	}
	if r := e.Response; r != nil && !r.Request.IsZero() && m.CausedBy.IsZero() && r.Request != e.GUID {
		m.CausedBy = r.Request
		if at, known := f.place[r.Request]; known {
			f.list[at].Causes = append(f.list[at].Causes, m.GUID)
		}
	}
}

// all are the messages, with what became of those that no entry has accepted, and with what their rows
// say. open are those that have rows.
func (f *messages) all(open []view.Message) []view.Message {
	all := slices.Clone(f.list)
	for guid, at := range f.place {
		m := &all[at]
		switch {
		case m.Accepted > 0 || f.state.rows[guid] != nil:
		case f.leaves[guid]:
			m.Verdict = view.Left
		case m.Kind == journal.MessageRequest && len(m.Causes) > 0:
			m.Verdict = view.Answered
		default:
			m.Verdict = view.Cancelled
		}
	}
	for i := range open {
		at, known := f.place[open[i].GUID]
		if !known {
			all = append(all, open[i])
			continue
		}
		m, x := &all[at], open[i]
		x.Since, x.Accepted, x.Last, x.Ledger, x.Says, x.Ordinal = m.Since, m.Accepted, m.Last, m.Ledger, m.Says,
			m.Ordinal
		x.Verdict, x.CausedBy, x.Causes = m.Verdict, m.CausedBy, m.Causes
		*m = x
	}
	return all
}

// sender is the message that dispatched what the entry dispatches: its own, or a Leg1 that it folds.
func (f *messages) sender(e *journal.Entry, g journal.GUID, folded map[journal.GUID]bool) journal.GUID {
	for leg1, is := range folded {
		if is && collation.RequestGUID(leg1, 0) == g {
			return leg1
		}
	}
	return e.GUID
}

// dispatch notes a message that an entry sends. A folded Leg1 is handled by it, too.
func (f *messages) dispatch(e *journal.Entry, by journal.GUID, d *journal.Dispatched) {
	if d.GUID == by { // the start, for which the first entry makes the row: it came from outside
		return
	}
	m := f.message(d.GUID, d.Kind, d.Activity, d.DAD)
	m.Since, m.CausedBy, m.Topic = e.Seq, by, d.Topic
	if !d.Job.IsZero() && d.Job != e.Job {
		m.ToJob = d.Job
	}
	if !m.ToJob.IsZero() || d.Kind == journal.MessageSignal {
		f.leaves[d.GUID] = true
	}
	if d.Folded != 0 {
		m.Accepted, m.Last, m.Verdict = e.Seq, e.Seq, view.Handled
	}
	if at, known := f.place[by]; known {
		f.list[at].Causes = append(f.list[at].Causes, m.GUID)
	}
}
