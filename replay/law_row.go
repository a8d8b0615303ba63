package replay

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// rowLaw checks the pairing of dispatch rows (V10, T1, C5). Each row is dispatched once and
// ends once: handled, folded, or cancelled by the end of its activity or by a close. No message
// is handled without a row, except those that come from outside.
func (a *auditor) rowLaw(e *journal.Entry, f *facts) {
	for i := range e.Dispatched {
		d := &e.Dispatched[i]
		if row := a.job.Rows[d.GUID]; row != nil {
			a.at(V10, e, "%s row %s is dispatched again, it stands since entry %d", d.Kind, d.GUID, row.Origin)
		} else if gone, ok := a.gone[d.GUID]; ok && !a.renews(f, d.GUID) {
			a.at(V10, e, "%s row %s is dispatched again%s", d.Kind, d.GUID, gone.fate())
		}
		if d.Folded == 0 && d.Arrivals != 0 {
			a.at(V4, e, "%s %s says arrivals, and no ledger", d.Kind, d.GUID)
		}
		if !d.Input.IsZero() && d.Kind != journal.MessageRequest && d.Kind != journal.MessageStart {
			a.at(V10, e, "%s %s says what input it sends, and sends none", d.Kind, d.GUID)
		}
	}
	if g, twice := repeated(e.Dispatched, func(d *journal.Dispatched) journal.GUID { return d.GUID }); twice {
		a.at(V10, e, "row %s is dispatched twice by this entry", g)
	}
	if g, twice := repeated(e.Updated, func(u *journal.Updated) journal.GUID { return u.GUID }); twice {
		a.at(V10, e, "row %s is updated twice by this entry", g)
	}
	if !hasRow(e, f) {
		a.at(V10, e, "the message %s is handled, but it has no row%s", e.GUID, a.fate(f.rowID))
	}
	a.endings(e, f)
	if len(e.CancelledByClose) > 0 && !f.marks.has(closed) {
		a.at(V10, e, "%d rows and waits are cancelled by an entry that closes nothing", len(e.CancelledByClose))
	}
	if g := e.Ended; !g.IsZero() && (g != f.rowID || !f.last) {
		a.at(V10, e, "row %s is ended by message %s, which is not its own or is not done", g, e.GUID)
	}
	for i := range e.Updated {
		if g := e.Updated[i].GUID; a.job.Rows[g] == nil && !(f.arrives && g == f.rowID) {
			a.at(V10, e, "row %s is updated, but does not stand%s", g, a.fate(g))
		}
	}
	a.releaseLaw(e, f)
	if len(e.Repaired) > 0 && !repairs(e) {
		a.at(V10, e, "an entry of kind %s says what it repaired", e.Kind)
	}
}

// repeated finds an id that occurs twice in a list.
func repeated[T any](list []T, id func(*T) journal.GUID) (journal.GUID, bool) {
	if len(list) < 2 {
		return journal.GUID{}, false
	}
	seen := make(map[journal.GUID]bool, len(list))
	for i := range list {
		g := id(&list[i])
		if seen[g] {
			return g, true
		}
		seen[g] = true
	}
	return journal.GUID{}, false
}

// hasRow applies C5 to a message's first entry; with a known receipt it needs no row.
func hasRow(e *journal.Entry, f *facts) bool {
	if f.known != nil {
		return true
	}
	switch e.Kind {
	case journal.KindLeg1, journal.KindLeg2, journal.KindStale, journal.KindInterrupt:
		return f.row != nil
	}
	return true
}

// byClose says how a row or a wait ends that a close cancels. A close also cancels what no
// entry has told of; the end of an activity does not.
const byClose = "cancelled by the close"

// endings checks that everything the entry ends ends once.
func (a *auditor) endings(e *journal.Entry, f *facts) {
	var all []journal.GUID
	for _, end := range [...]struct {
		how  string
		list []journal.GUID
	}{{"ended", ended(e)}, {byClose, e.CancelledByClose}, {"cancelled", e.Cancelled}} {
		for _, g := range end.list {
			a.ends(e, f, g, end.how)
		}
		if len(all) == 0 {
			all = end.list
		} else {
			all = append(all[:len(all):len(all)], end.list...)
		}
	}
	if g, twice := repeated(all, func(g *journal.GUID) journal.GUID { return *g }); twice {
		a.at(V10, e, "row %s ends twice in this entry", g)
	}
}

// ended is the row of the entry's message, if the message is done.
func ended(e *journal.Entry) []journal.GUID {
	if e.Ended.IsZero() {
		return nil
	}
	return []journal.GUID{e.Ended}
}

// ends checks that what ends exists: a row, a wait or the start of a child; or that this entry
// writes it, or that it arrives with the entry.
func (a *auditor) ends(e *journal.Entry, f *facts, g journal.GUID, how string) {
	if a.job.Rows[g] != nil || a.job.Waits[g] != nil || f.arrives && g == f.rowID {
		return
	}
	if slices.ContainsFunc(e.Dispatched, func(d journal.Dispatched) bool {
		return d.GUID == g && d.Job.IsZero() && d.Folded == 0
	}) {
		return
	}
	if a.job.Children[g] != nil && how != "ended" {
		return
	}
	if _, ok := a.cancelledWaits[g]; ok && how == byClose {
		return
	}
	if gone := a.gone[g]; gone.wait {
		a.at(V13, e, "wait %s is %s, but does not stand%s", g, how, gone.fate())
		return
	}
	if how == byClose && f.undelivered[g] != nil {
		return
	}
	a.at(V10, e, "row %s is %s, but does not stand%s", g, how, a.fate(g))
}

// releaseLaw checks the rows that a message updates besides its own. The end of an element
// releases the next held one, and nothing else (1.11). A dead letter holds a row, and an
// operator acts on one (E10).
func (a *auditor) releaseLaw(e *journal.Entry, f *facts) {
	switch e.Kind {
	case journal.KindOperator:
		if repairs(e) {
			a.repairLaw(e)
		} else if len(e.Updated) == 0 {
			a.at(V10, e, "an operator acts on no row")
		}
		return
	case journal.KindOverdue:
		a.overdueLaw(e, f)
		return
	case journal.KindDeadLetter:
		if len(e.Updated) != 1 || e.Updated[0].Held == "" || e.Trouble == nil {
			a.at(V10, e, "a dead letter that holds no row, or does not say why")
		}
		return
	}
	for i := range e.Updated {
		u := &e.Updated[i]
		row := a.job.Rows[u.GUID]
		if row == nil || u.GUID == f.rowID || a.sendsOut(e, f, u, row) {
			continue
		}
		due := -1
		if f.partial {
			due = f.inst.Parallel + f.inst.Count - f.inst.Open
		}
		if row.key() != f.key || row.Held != heldParallel || u.Held != "" || row.Element != due {
			a.at(V10, e, "row %s of %s %s, element %d, is updated; due is element %d of %s %s (-1: none)",
				u.GUID, row.Activity, row.DAD, row.Element, due, f.key.Activity, f.key.DAD)
		}
	}
}

// fate says what became of a row, for violations.
func (a *auditor) fate(g journal.GUID) string {
	if gone, ok := a.gone[g]; ok {
		return gone.fate()
	}
	return "; it was never dispatched"
}

// goneRow is what is remembered of a row, wait or start that ended, or of a message that left
// for another job.
type goneRow struct {
	seq  int64
	key  collation.InstanceKey
	turn int
	wait bool
	left bool
}

func (g goneRow) fate() string {
	if g.left {
		return "; it was sent to another job at entry " + itoa(g.seq)
	}
	return "; it ended at entry " + itoa(g.seq)
}

// remember records what later entries are compared with: what ends or leaves here, and the
// heads that this entry binds.
func (a *auditor) remember(e *journal.Entry, f *facts) {
	for _, list := range [...][]journal.GUID{ended(e), e.CancelledByClose, e.Cancelled} {
		for _, g := range list {
			gone := goneRow{seq: e.Seq, wait: a.job.Waits[g] != nil || a.gone[g].wait}
			if row := a.job.Rows[g]; row != nil {
				gone.key, gone.turn = row.key(), row.Turn
			}
			a.gone[g] = gone
		}
	}
	for i := range e.Dispatched {
		if d := &e.Dispatched[i]; !d.Job.IsZero() || d.Folded != 0 {
			a.gone[d.GUID] = goneRow{seq: e.Seq, left: d.Folded == 0}
		}
	}
	for i := range e.Updated {
		if u := &e.Updated[i]; u.Held == heldParked {
			a.parked[rowTurn{u.GUID, u.Turn}] = e.Seq
		}
	}
	if e.Kind == journal.KindOperator {
		a.operators[e.GUID] = e.Seq
		a.judge(e)
	}
	if f.arrives && f.row.Kind == journal.MessageInterrupt {
		a.external++
	}
	if f.consumes(e) {
		g, _ := a.job.waitOf(f.inst)
		a.gone[g] = goneRow{seq: e.Seq, wait: true}
	} else if f.wakes(e) && a.job.Waits[e.GUID] != nil {
		a.gone[e.GUID] = goneRow{seq: e.Seq, wait: true}
	}
	a.foundCancelled(e, f)
	if b := e.Bound; b != nil {
		if _, twice := a.bounds[b.Chain]; twice || b.Chain != f.rowID {
			a.at(V12, e, "the entry binds the effect chain %s, its request is %s, bound already: %t", b.Chain, f.rowID, twice)
		}
		a.bounds[b.Chain] = bound{b.Head, e.Seq}
	} else if r := e.Response; r != nil && r.Kind == journal.ResponseTerminal && !r.Request.IsZero() {
		a.bounds[r.Request] = bound{seq: e.Seq} // an empty chain is bound, too
	}
}
