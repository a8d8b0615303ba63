package collation

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// Bounds of what is delivered to one mailbox in one transaction (T11).
const (
	// MaxDue bounds the signals of one mailbox that are delivered together because
	// they are due. Where that many are, those that come later wait their turn.
	MaxDue = 256
	// MaxWoken bounds the wake-ups of one transaction that delivers several
	// signals; past it each is to be delivered alone.
	MaxWoken = 2 * MaxReach
	// moreWaits is how many times more waits are asked for when those that were
	// read do not take a signal.
	moreWaits = 32
)

// ErrManyWoken asks for signals one by one.
var ErrManyWoken = errors.New("the signals reach too many waits together: deliver them one by one")

// SignalState is what became of a signal.
type SignalState string

// The states of a signal.
const (
	SignalConsumed SignalState = "consumed" // a wait took it
	SignalKept     SignalState = "kept"     // nobody waits yet
	SignalMissed   SignalState = "missed"   // mode all, and nobody waits
)

// Box is a mailbox, one topic and key, as it was read under its lock (J3).
type Box struct {
	ID    journal.JobID
	Now   Micros
	Waits []BoxWait // open, of jobs that take signals, the oldest first
	All   bool      // there are no more than these
	Named []*Row    // the signals that are to be delivered and were not yet
	Due   []*Row    // those that are due, named or not, what was kept first, at most MaxDue
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
	// Woken are the waits of Plan.Insert, as they were read, in its order; rows of
	// the mailbox itself come behind them.
	Woken []*BoxWait
	// State and Reached are what became of the signal from outside.
	State   SignalState
	Reached int
}

// Deliver hands the signals that were named to the waits of their mailbox, the
// oldest signal first (1.11). It reads the box. What is due in it and was sent before
// goes first: a signal that ends a hook overtakes none that was kept for it. Mode
// one: the oldest wait that takes it, otherwise its row is kept; mode all: every wait
// that takes it, at most MaxReach. It writes wake-ups, the waits that were taken, and
// the rows of the signals. more is how many further waits are needed: read them and
// ask again. The error is ErrSignal, or ErrManyWoken.
func Deliver(box *Box, mode Mode) (m *Mail, more int, err error) {
	p := post(box, mode)
	return p.end(p.all(box.queue(box.Named)))
}

// Receive decides on a signal from outside, sent now: it is delivered behind those
// that are due, or kept. Behind too many of them it is due itself. It is as Deliver,
// and writes the record of its GUID.
func Receive(box *Box, x *Signal, row Row, mode Mode) (m *Mail, more int, err error) {
	p := post(box, mode)
	before := slices.DeleteFunc(box.queue([]*Row{&row}), func(r *Row) bool { return r == &row })
	more, err = p.all(before)
	if more > 0 || err != nil {
		return p.end(more, err)
	}
	p.State = SignalKept
	if !box.full() {
		if p.State, p.Reached, more = p.hand(x); p.State == SignalKept {
			row = x.Kept(row)
		}
	}
	if p.State == SignalKept {
		p.kept = append(p.kept, row)
	}
	p.Plan.Signals = append(p.Plan.Signals, SignalWrite{GUID: x.GUID, State: p.State, New: true})
	return p.end(more, nil)
}

// posting is a delivery under way. The box stays as it was read.
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

func (p *posting) end(more int, err error) (*Mail, int, error) {
	if more > 0 || err != nil {
		return nil, more, err
	}
	for _, w := range p.waits {
		if w.Ended || w.Count != w.Seen {
			p.Plan.Taken = append(p.Plan.Taken, w)
		}
	}
	p.Plan.Insert = append(p.Plan.Insert, p.kept...)
	return &p.Mail, 0, nil
}

// queue are the signals to deliver: those that were named, and what is due and was
// sent before them. Of a mailbox with more of them than MaxDue only they are.
func (box *Box) queue(named []*Row) []*Row {
	known, last := make(map[journal.GUID]bool, len(named)), Micros(0)
	for _, r := range named {
		known[r.GUID] = true
		if x, err := SignalOf(r); err == nil {
			last = max(last, x.Sent)
		}
	}
	rows := slices.DeleteFunc(slices.Clone(named), func(r *Row) bool {
		return box.full() && !slices.ContainsFunc(box.Due, func(d *Row) bool { return d.GUID == r.GUID })
	})
	for _, r := range box.Due { // one that cannot be read is left to its own message
		if x, err := SignalOf(r); err == nil && !x.All && !known[r.GUID] && x.Sent < last {
			rows = append(rows, r)
		}
	}
	return rows
}

// full reports whether more signals of the mailbox may be due than were read.
func (box *Box) full() bool { return len(box.Due) >= MaxDue }

// all hands the signals of rows over, those of one time in the order of their GUIDs.
func (p *posting) all(rows []*Row) (more int, err error) {
	signals := make([]*Signal, len(rows))
	for i, r := range rows {
		if signals[i], err = SignalOf(r); err != nil {
			return 0, err
		}
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(signals[a].Sent, signals[b].Sent), bytes.Compare(rows[a].GUID[:], rows[b].GUID[:]))
	})
	for _, i := range order {
		x := signals[i]
		state, _, more := p.hand(x)
		switch {
		case more > 0:
			return more, nil
		case state == SignalKept:
			p.Plan.Update = append(p.Plan.Update, x.Kept(*rows[i]))
		default:
			p.Plan.Delete = append(p.Plan.Delete, x.GUID)
			p.Plan.Signals = append(p.Plan.Signals, SignalWrite{GUID: x.GUID, State: state})
		}
		if len(p.Woken) > MaxWoken && len(rows) > 1 {
			return 0, ErrManyWoken
		}
	}
	return 0, nil
}

// hand gives the signal to the oldest wait of the mailbox that takes it, or to all
// that do (1.11).
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
	p.Woken = append(p.Woken, &p.Waits[i])
}
