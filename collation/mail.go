package collation

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// Bounds of one delivery to a mailbox, in one transaction (T11).
const (
	// MaxDue bounds the due signals of one mailbox that are delivered together. When that many
	// are due, later ones wait their turn.
	MaxDue = 256
	// MaxWakeUps bounds the wake-ups of one transaction; the rest follow in the next one.
	MaxWakeUps = 2 * MaxReach
	// moreWaits is the factor by which more waits are read when those that were read do not take
	// a signal.
	moreWaits = 32
)

// SignalState is what became of a signal.
type SignalState string

// The states of a signal.
const (
	SignalConsumed SignalState = "consumed" // a wait took it
	SignalKept     SignalState = "kept"     // nobody waits yet
	SignalMissed   SignalState = "missed"   // nobody took it, and it is not kept; of an interrupt: its job was closed
)

// Box is a mailbox, of one topic and key, as it was read under its lock (J3). Apply updates it
// by the decisions made since.
type Box struct {
	ID    journal.JobID
	Now   Micros
	Waits []BoxWait             // open waits of jobs that take signals, the oldest first
	All   bool                  // Waits has all of them
	Named map[journal.GUID]*Row // signals that were asked for; a missing one is gone
	Due   []*Row                // due signals, named or not, kept ones first, at most MaxDue

	signals map[journal.GUID]*Signal // of rows that were read
}

// BoxWait is an open wait of any job, with the fields for the message of its wake-up.
type BoxWait struct {
	Wait
	JobKey     string
	Generation int64
	Flow       journal.FlowRef
	Trace      string
}

// Taken is a wait of any job that signals have ended or counted, by test-and-set.
type Taken struct {
	Job   journal.JobID
	GUID  journal.GUID
	Seen  int // its count when it was read
	Count int // its count now, if it stays
	Ended bool
}

// SignalWrite is what became of a signal. The record of a signal from outside reveals the same
// one sent twice. New: the record is inserted; otherwise it is updated, if there is one.
// Reason is why an engine refused the start that a client asked for, whose record stands beside
// those of the signals (S8).
type SignalWrite struct {
	GUID   journal.GUID
	State  SignalState
	New    bool
	Reason string
}

// Mail is the result of delivering signals to a mailbox.
type Mail struct {
	Plan *Plan
	// ResolvedWaits are the waits of the rows in Plan.Insert, as they were read and in that
	// order. Rows of the mailbox itself come after them.
	ResolvedWaits []BoxWait
	// State and Reached are what became of the signal that was asked about.
	State   SignalState
	Reached int
}

// Deliver hands the signal of a row to the waits of its mailbox (1.11). It reads the box. Due
// signals that were sent before go first, so that a signal that ends a hook does not overtake
// those that were kept for it. Mode one: the oldest wait that takes the signal gets it,
// otherwise the row is kept. Mode all: every wait that takes it, at most MaxReach. It writes
// wake-ups, the taken waits, and the rows of the signals. Behind MaxDue due signals it waits
// its turn. nil: the row is gone or held, so the signal was handled before. Error: ErrSignal.
func Deliver(box *Box, signal journal.GUID, mode Mode) (*Mail, *Need, error) {
	row := box.Named[signal]
	if row == nil || row.Held != "" || row.Kind != journal.MessageSignal {
		return nil, nil, nil
	}
	x, err := box.signal(row)
	if err != nil {
		return nil, nil, err
	}
	rows := box.before(x)
	waits := box.full() && !slices.ContainsFunc(box.Due, func(d *Row) bool { return d.GUID == signal })
	if !waits {
		rows = append(rows, row)
	}
	p := post(box, mode)
	for _, r := range rows {
		if more := p.pass(r); more > 0 {
			return nil, &Need{Further: more}, nil
		}
	}
	if waits { // the state of the signals before it is not its own
		p.State, p.Reached = SignalKept, 0
	}
	return p.end(), nil, nil
}

// Receive decides on a signal from outside, sent now. It is delivered after those that are due,
// or kept; behind MaxDue of them it becomes due itself. Otherwise it is like Deliver, and it
// writes the record of the GUID.
func Receive(box *Box, space string, in Signal, mode Mode) (*Mail, *Need, error) {
	in.Sent = box.Now // this time decides how long it is kept, and which waits take it (J5)
	row, err := in.Row(space)
	if err != nil {
		return nil, nil, err
	}
	p := post(box, mode)
	for _, r := range box.before(&in) {
		if more := p.pass(r); more > 0 {
			return nil, &Need{Further: more}, nil
		}
	}
	p.State, p.Reached = SignalKept, 0
	if !box.full() {
		state, reached, more := p.hand(&in)
		switch {
		case more > 0:
			return nil, &Need{Further: more}, nil
		case state == SignalKept:
			row = in.Kept(row)
		}
		p.State, p.Reached = state, reached
	}
	if p.State == SignalKept {
		p.kept = append(p.kept, row)
	}
	p.Plan.Signals = append(p.Plan.Signals, SignalWrite{GUID: in.GUID, State: p.State, New: true})
	return p.end(), nil, nil
}

// Send decides on a signal from a caller's transaction (E17): its row is due with the commit,
// and no lock of the key is held until then.
func Send(space string, in Signal, now Micros) (*Plan, error) {
	in.Sent = now
	row, err := in.Row(space)
	if err != nil {
		return nil, err
	}
	return &Plan{
		Job: row.Job, Outcome: Handled, Done: true, RowWrites: RowWrites{Insert: []Row{row}},
		MailboxWrites: MailboxWrites{Signals: []SignalWrite{{GUID: in.GUID, State: SignalKept, New: true}}},
	}, nil
}

// Lapse ends a kept signal whose time has passed: nobody waited for it. nil: it is not such a
// signal.
func Lapse(box *Box, signal journal.GUID) *Plan {
	row := box.Named[signal]
	if row == nil || row.Held != HeldKept || row.WithinAt == Never || row.WithinAt > box.Now {
		return nil
	}
	return &Plan{
		Job: box.ID, Outcome: Handled, Done: true, RowWrites: RowWrites{Delete: []journal.GUID{signal}},
		MailboxWrites: MailboxWrites{Signals: []SignalWrite{{GUID: signal, State: SignalMissed}}},
	}
}

// Apply updates the box by a plan that was decided on it.
func (box *Box) Apply(p *Plan) {
	taken := make(map[journal.GUID]*Taken, len(p.Taken))
	for i := range p.Taken {
		taken[p.Taken[i].GUID] = &p.Taken[i]
	}
	box.Waits = slices.DeleteFunc(box.Waits, func(w BoxWait) bool { t := taken[w.GUID]; return t != nil && t.Ended })
	for i := range box.Waits {
		if t := taken[box.Waits[i].GUID]; t != nil {
			box.Waits[i].Count = t.Count
		}
	}
	gone := make(map[journal.GUID]bool, len(p.Delete)+len(p.Update))
	for _, g := range p.Delete {
		gone[g] = true
		delete(box.Named, g)
	}
	for i := range p.Update {
		r := &p.Update[i]
		gone[r.GUID] = true
		if box.Named[r.GUID] != nil {
			box.Named[r.GUID] = r
		}
	}
	box.Due = slices.DeleteFunc(box.Due, func(r *Row) bool { return gone[r.GUID] })
	for i := range p.Insert {
		if r := &p.Insert[i]; r.Job == box.ID && r.Held == "" {
			box.Due = append(box.Due, r)
		}
	}
}

// posting is a delivery in progress. The Box itself does not change.
type posting struct {
	*Box
	Mail
	mode  Mode
	waits []Taken // what becomes of Box.Waits, by index
	kept  []Row
}

func post(box *Box, mode Mode) *posting {
	p := &posting{Box: box, mode: mode, waits: make([]Taken, len(box.Waits))}
	p.Plan = &Plan{Job: box.ID, Outcome: Handled, Done: true}
	for i := range box.Waits {
		w := &box.Waits[i]
		p.waits[i] = Taken{Job: w.Job, GUID: w.GUID, Seen: w.Count, Count: w.Count}
	}
	return p
}

func (p *posting) end() *Mail {
	for _, w := range p.waits {
		if w.Ended || w.Count != w.Seen {
			p.Plan.Taken = append(p.Plan.Taken, w)
		}
	}
	p.Plan.Insert = append(p.Plan.Insert, p.kept...)
	return &p.Mail
}

// signal reads the signal of a row, and remembers it.
func (box *Box) signal(r *Row) (*Signal, error) {
	if x := box.signals[r.GUID]; x != nil {
		return x, nil
	}
	x, err := SignalOf(r)
	if err != nil {
		return nil, err
	}
	if box.signals == nil {
		box.signals = map[journal.GUID]*Signal{}
	}
	box.signals[r.GUID] = x
	return x, nil
}

// before lists the due rows that go before the signal, by the time they were sent, then by
// GUID. A row that is unreadable, or of mode all, is left to its own message.
func (box *Box) before(x *Signal) []*Row {
	sent := func(r *Row) Micros { return box.signals[r.GUID].Sent }
	rows := slices.DeleteFunc(slices.Clone(box.Due), func(r *Row) bool {
		d, err := box.signal(r)
		return err != nil || d.All || r.GUID == x.GUID || d.Sent >= x.Sent
	})
	slices.SortFunc(rows, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(sent(a), sent(b)), bytes.Compare(a.GUID[:], b.GUID[:]))
	})
	return rows
}

// full reports whether more signals may be due than were read.
func (box *Box) full() bool { return len(box.Due) >= MaxDue }

// pass delivers or keeps the signal of a row. more is as in hand.
func (p *posting) pass(r *Row) (more int) {
	x := p.signals[r.GUID]
	state, reached, more := p.hand(x)
	switch {
	case more > 0:
		return more
	case state == SignalKept:
		kept := x.Kept(*r)
		kept.Rev++
		p.Plan.Update = append(p.Plan.Update, kept)
	default:
		p.Plan.Delete = append(p.Plan.Delete, x.GUID)
		p.Plan.Signals = append(p.Plan.Signals, SignalWrite{GUID: x.GUID, State: state})
	}
	p.State, p.Reached = state, reached
	return 0
}

// hand gives the signal to the oldest wait that takes it, or to all that do (1.11). If more is
// not 0, read that many further waits and decide again.
func (p *posting) hand(x *Signal) (state SignalState, reached, more int) {
	reach, none := 1, SignalKept
	if x.All {
		reach, none = MaxReach, SignalMissed
	}
	for i := range p.waits {
		if reached == reach {
			break
		}
		if w := &p.waits[i]; !w.Ended && p.Waits[i].Takes(x, p.Now) {
			p.wake(i, x)
			reached++
		}
	}
	switch {
	case reached < reach && !p.Box.All:
		return "", 0, min(max(reach-reached, moreWaits*len(p.waits)), MaxReach)
	case reached == 0:
		return none, 0, 0
	}
	return SignalConsumed, reached, 0
}

// wake makes the wake-up of a wait that takes the signal.
func (p *posting) wake(i int, x *Signal) {
	w, at := p.Waits[i].Wait, &p.waits[i]
	w.Count = at.Count
	var row Row
	if row, at.Ended = w.Deliver(x, p.Now, p.mode); !at.Ended {
		at.Count++
	}
	p.Plan.Insert = append(p.Plan.Insert, row)
	p.ResolvedWaits = append(p.ResolvedWaits, p.Waits[i])
}
