package collation

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// Bounds of what is delivered to one mailbox in one transaction (T11).
const (
	// MaxDue bounds the signals of one mailbox that are delivered together because
	// they are due. Where that many are, those that come later wait their turn.
	MaxDue = 256
	// MaxWakeUps bounds the wake-ups of one transaction; what would wake more comes in
	// the next one.
	MaxWakeUps = 2 * MaxReach
	// moreWaits is how many times more waits are asked for when those that were
	// read do not take a signal.
	moreWaits = 32
)

// SignalState is what became of a signal.
type SignalState string

// The states of a signal.
const (
	SignalConsumed SignalState = "consumed" // a wait took it
	SignalKept     SignalState = "kept"     // nobody waits yet
	SignalMissed   SignalState = "missed"   // mode all, and nobody waits; of an interrupt: its job was closed
)

// Box is a mailbox, one topic and key, as it was read under its lock (J3), and as
// the decisions on it since then leave it.
type Box struct {
	ID    journal.JobID
	Now   Micros
	Waits []BoxWait             // open, of jobs that take signals, the oldest first
	All   bool                  // there are no more than these
	Named map[journal.GUID]*Row // signals that were asked for; one that is not there has gone
	Due   []*Row                // those that are due, named or not, what was kept first, at most MaxDue

	signals map[journal.GUID]*Signal // of rows that were read
}

// BoxWait is an open wait of any job, with what the message of its wake-up carries.
type BoxWait struct {
	Wait
	JobKey     string
	Generation int64
	Flow       journal.FlowRef
	Trace      string
}

// Taken is a wait of any job that signals have ended, or counted, by test-and-set.
type Taken struct {
	Job   journal.JobID
	GUID  journal.GUID
	Seen  int // its count as it was read
	Count int // its count now, of one that stays
	Ended bool
}

// SignalWrite is what became of a signal: by the record of one from outside the
// same, sent twice, is known. New: the record is written, otherwise it is changed
// where there is one.
type SignalWrite struct {
	GUID  journal.GUID
	State SignalState
	New   bool
}

// Mail is what signals did to a mailbox.
type Mail struct {
	Plan *Plan
	// ResolvedWaits are the waits of Plan.Insert, as they were read, in its order; rows of
	// the mailbox itself come behind them.
	ResolvedWaits []BoxWait
	// State and Reached are what became of the signal that was asked about.
	State   SignalState
	Reached int
}

// Deliver hands the signal of a row to the waits of its mailbox (1.11). It reads the
// box. What is due in it and was sent before goes first: a signal that ends a hook
// overtakes none that was kept for it. Mode one: the oldest wait that takes it,
// otherwise its row is kept; mode all: every wait that takes it, at most MaxReach. It
// writes wake-ups, the waits that were taken, and the rows of the signals. Behind
// more of them than are delivered together it waits its turn. Nil: its row has gone or
// is held, so that it was handled before. The error is ErrSignal.
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
	if waits { // what became of those before it is not its state
		p.State, p.Reached = SignalKept, 0
	}
	return p.end(), nil, nil
}

// Receive decides on a signal from outside, sent now: it is delivered behind those
// that are due, or kept. Behind too many of them it is due itself. It is as Deliver,
// and writes the record of its GUID.
func Receive(box *Box, space string, in Signal, mode Mode) (*Mail, *Need, error) {
	in.Sent = box.Now // its time decides how long it is kept, and for whom (J5)
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

// Send decides on a signal that a caller's transaction sends (E17): its row is due
// with the commit, and no lock of the key is held until then.
func Send(space string, in Signal, now Micros) (*Plan, error) {
	in.Sent = now
	row, err := in.Row(space)
	if err != nil {
		return nil, err
	}
	return &Plan{
		Job: row.Job, Outcome: Handled, Done: true, Insert: []Row{row},
		Signals: []SignalWrite{{GUID: in.GUID, State: SignalKept, New: true}},
	}, nil
}

// Lapse ends a signal that was kept and whose time has passed: nobody waited for it.
// Nil: it is not so.
func Lapse(box *Box, signal journal.GUID) *Plan {
	row := box.Named[signal]
	if row == nil || row.Held != HeldKept || row.WithinAt == Never || row.WithinAt > box.Now {
		return nil
	}
	return &Plan{
		Job: box.ID, Outcome: Handled, Done: true, Delete: []journal.GUID{signal},
		Signals: []SignalWrite{{GUID: signal, State: SignalMissed}},
	}
}

// Apply moves the box on by a plan that was decided on it.
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

// posting is a delivery under way. The box stays as it was.
type posting struct {
	*Box
	Mail
	mode  Mode
	waits []Taken // beside those of the box
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

// signal reads the signal of a row, once.
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

// before are the rows that are due and go before the signal, in their order: by the
// time that they were sent, those of one time by their GUIDs. One that cannot be
// read, or is for all, is left to its own message.
func (box *Box) before(x *Signal) []*Row {
	sent := func(r *Row) Micros { return box.signals[r.GUID].Sent }
	rows := slices.DeleteFunc(slices.Clone(box.Due), func(r *Row) bool {
		d, err := box.signal(r)
		return err != nil || d.All || r.GUID == x.GUID || d.Sent >= x.Sent
	})
	slices.SortFunc(rows, func(a, b *Row) int { return cmp.Or(cmp.Compare(sent(a), sent(b)), bytes.Compare(a.GUID[:], b.GUID[:])) })
	return rows
}

// full reports whether more signals of the mailbox may be due than were read.
func (box *Box) full() bool { return len(box.Due) >= MaxDue }

// pass hands the signal of a row of the mailbox over, or keeps it. more is as of
// hand.
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

// hand gives the signal to the oldest wait of the mailbox that takes it, or to all
// that do (1.11). more is how many further waits are needed: read them and ask again.
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

// wake is what a signal does to a wait that takes it.
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
