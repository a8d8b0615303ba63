package inspect

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// Message is what the journal of a job tells of one of its messages, up to an entry (1.3, J10).
// Seqs are of the main chain.
type Message struct {
	GUID     string `json:"guid"`
	Kind     string `json:"kind"`
	Activity string `json:"activity,omitempty"`
	Address  string `json:"address,omitempty"`
	// Ledger has the 15 digits of the message. "": it has no ledger, because one entry is all that
	// it does, or it was not accepted yet.
	Ledger string `json:"ledger,omitempty"`
	// Says is what the digits mean.
	Says string `json:"says,omitempty"`
	// Ordinal is its number among the messages that its activity accepted as Leg2, from 1; 0: it is
	// none of them.
	Ordinal int `json:"ordinal,omitempty"`
	// Verdict is handled or stale. Of a message that no entry accepts: answered, for a request;
	// cancelled; sent, to another job; "": it is open.
	Verdict string `json:"verdict,omitempty"`
	// Sent is the entry that dispatched it; 0: it came from outside.
	Sent int64 `json:"sent,omitempty"`
	// Accepted is the entry that accepted it, and Last the last one that it made.
	Accepted int64 `json:"accepted,omitempty"`
	Last     int64 `json:"last,omitempty"`
	// CausedBy is the message that dispatched it, or the request that it answers.
	CausedBy string `json:"caused_by,omitempty"`
	// Causes are the messages that it dispatched.
	Causes []string `json:"causes,omitempty"`
}

// ReadMessages returns the messages of a job, in the order in which its journal first names them: as
// they are, or, with at from 1, as they were after that entry. Errors: store.ErrNotFound,
// ErrTombstone, ErrPast, or one that says that the job has over MaxHistory entries.
func ReadMessages(ctx context.Context, r Reader, job journal.JobID, at int64) ([]Message, error) {
	v, err := r.Job(ctx, job)
	if err != nil {
		return nil, err
	}
	if at > v.Head.Seq {
		return nil, fmt.Errorf("%w: job %q has %d, not %d", ErrPast, v.Key, v.Head.Seq, at)
	}
	all, err := entries(ctx, r, job, MaxHistory, "read it with quipu export")
	if err != nil {
		return nil, fmt.Errorf("read the messages of job %q: %w", v.Key, err)
	}
	return foldMessages(v, all, at)
}

// ErrPast says that a journal has no entry of that number.
var ErrPast = fmt.Errorf("%w: the journal has no such entry", store.ErrNotFound)

// foldMessages folds entries, the main chain first, up to entry at; 0: all.
func foldMessages(v *store.JobView, all []*journal.Entry, at int64) ([]Message, error) {
	f := fold{
		job:   replay.New(replay.Header{Space: v.Space, Job: v.ID, Key: v.Key, Generation: v.Generation}),
		place: map[journal.GUID]int{}, leaves: map[journal.GUID]bool{},
	}
	for _, e := range all {
		if !e.Chain.IsZero() || at > 0 && e.Seq > at {
			break
		}
		if err := f.job.ApplyEntry(e, journal.Digest{}); err != nil {
			return nil, err
		}
		f.add(e)
	}
	f.end()
	return f.list, nil
}

// The verdicts of messages that no entry of their job accepts.
const (
	verdictAnswered  = "answered"
	verdictCancelled = "cancelled"
	verdictSent      = "sent"
)

// fold gathers messages from entries.
type fold struct {
	job   *replay.Job
	list  []Message
	place map[journal.GUID]int // in list
	// leaves has the messages that were sent to other jobs, or to mailboxes.
	leaves map[journal.GUID]bool
}

// message returns the message of that GUID, and makes it if it is new.
func (f *fold) message(g journal.GUID, kind journal.MessageKind, activity, address string) *Message {
	at, known := f.place[g]
	if !known {
		at = len(f.list)
		f.place[g] = at
		f.list = append(f.list, Message{GUID: g.String()})
	}
	m := &f.list[at]
	if m.Kind == "" {
		m.Kind = string(kind)
	}
	if m.Activity == "" {
		m.Activity, m.Address = activity, address
	}
	return m
}

// add adds what an entry did with its message, and what it dispatched.
func (f *fold) add(e *journal.Entry) {
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
		f.dispatch(e, e.GUID, &journal.Dispatched{
			GUID: collation.RequestGUID(e.GUID, n), Kind: journal.MessageRequest, Activity: e.Activity, DAD: e.DAD,
		})
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
func (f *fold) accept(e *journal.Entry) {
	kind := journal.MessageLeg1
	if e.Kind == journal.KindCreated {
		kind = journal.MessageStart
	}
	receipt := f.job.Receipts[e.GUID]
	if receipt != nil && receipt.Message != "" {
		kind = receipt.Message
	}
	m := f.message(e.GUID, kind, e.Activity, e.DAD)
	if m.Accepted == 0 {
		m.Accepted, m.Verdict = e.Seq, string(journal.VerdictHandled)
	}
	m.Last = e.Seq
	if receipt != nil {
		m.Verdict, m.Ordinal = string(receipt.Verdict), receipt.Ledger.Ordinal()
		m.Ledger, m.Says = receipt.Ledger.String(), saysLedger(receipt.Ledger)
	}
	if r := e.Response; r != nil && !r.Request.IsZero() && m.CausedBy == "" && r.Request != e.GUID {
		m.CausedBy = r.Request.String()
		if at, known := f.place[r.Request]; known {
			f.list[at].Causes = append(f.list[at].Causes, m.GUID)
		}
	}
}

// end says what became of the messages that no entry has accepted.
func (f *fold) end() {
	for guid, at := range f.place {
		m := &f.list[at]
		switch {
		case m.Accepted > 0 || f.job.Rows[guid] != nil:
		case f.leaves[guid]:
			m.Verdict = verdictSent
		case m.Kind == string(journal.MessageRequest) && len(m.Causes) > 0:
			m.Verdict = verdictAnswered
		default:
			m.Verdict = verdictCancelled
		}
	}
}

// sender is the message that dispatched what the entry dispatches: its own, or a Leg1 that it folds.
func (f *fold) sender(e *journal.Entry, g journal.GUID, folded map[journal.GUID]bool) journal.GUID {
	for leg1, is := range folded {
		if is && collation.RequestGUID(leg1, 0) == g {
			return leg1
		}
	}
	return e.GUID
}

// dispatch notes a message that an entry sends. A folded Leg1 is handled by it, too.
func (f *fold) dispatch(e *journal.Entry, by journal.GUID, d *journal.Dispatched) {
	m := f.message(d.GUID, d.Kind, d.Activity, d.DAD)
	m.Sent, m.CausedBy = e.Seq, by.String()
	if !d.Job.IsZero() && d.Job != e.Job || d.Kind == journal.MessageSignal {
		f.leaves[d.GUID] = true
	}
	if d.Folded != 0 {
		m.Accepted, m.Last, m.Verdict = e.Seq, e.Seq, string(journal.VerdictHandled)
	}
	if at, known := f.place[by]; known {
		f.list[at].Causes = append(f.list[at].Causes, m.GUID)
	}
}

// saysLedger says what the digits of a message's ledger mean (1.3).
func saysLedger(l collation.GUIDLedger) string {
	switch {
	case l == 0:
		return "stale: it changed nothing"
	case l.Step3():
		return "it closed the job, and the completion tasks are done"
	case l.Closed():
		return "it closed the job; the completion tasks are to come"
	case l.Step2():
		return "step 2 done: what follows was dispatched"
	case l.Step1():
		return "step 1 done: the result is recorded"
	}
	return "accepted"
}
