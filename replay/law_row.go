package replay

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// rowLaw checks the pairing of dispatch rows (V10, T1, C5): each is dispatched
// once and ends once, by being handled, folded or withdrawn; nothing is handled
// without one.
func (a *auditor) rowLaw(e *journal.Entry, f *facts) {
	for i := range e.Dispatched {
		d := &e.Dispatched[i]
		if row := a.job.Rows[d.GUID]; row != nil {
			a.at(V10, e, "%s row %s is dispatched again, it stands since entry %d", d.Kind, d.GUID, row.Origin)
		} else if gone, ok := a.gone[d.GUID]; ok {
			a.at(V10, e, "%s row %s is dispatched again, it ended at entry %d", d.Kind, d.GUID, gone.seq)
		}
	}
	if !a.licensed(e, f) {
		a.at(V10, e, "the message %s is handled, but no row licenses it%s", e.GUID, a.fate(f.licence))
	}
	for _, g := range e.Ended {
		a.ends(e, g, "ended")
		if g != f.licence || !f.last {
			a.at(V10, e, "row %s is ended by message %s, which is not its own or is not done", g, e.GUID)
		}
	}
	for _, g := range e.Withdrawn {
		a.ends(e, g, "withdrawn")
	}
	for _, g := range e.Folded {
		a.ends(e, g, "folded")
	}
	for i := range e.Updated {
		if g := e.Updated[i].GUID; a.job.Rows[g] == nil {
			a.at(V10, e, "row %s is updated, but does not stand%s", g, a.fate(g))
		}
	}
}

// licensed applies C5 to a message's first entry; a known receipt needs no row.
func (a *auditor) licensed(e *journal.Entry, f *facts) bool {
	if f.known != nil {
		return true
	}
	switch e.Kind {
	case journal.KindLeg1, journal.KindLeg2, journal.KindStale:
		return a.job.Rows[f.licence] != nil
	}
	return true
}

// ends checks that a row that ends stands, or is written by this entry.
func (a *auditor) ends(e *journal.Entry, g journal.GUID, how string) {
	if a.job.Rows[g] != nil || slices.ContainsFunc(e.Dispatched, func(d journal.Dispatched) bool { return d.GUID == g }) {
		return
	}
	a.at(V10, e, "row %s is %s, but does not stand%s", g, how, a.fate(g))
}

// fate says what became of a row, for messages.
func (a *auditor) fate(g journal.GUID) string {
	if gone, ok := a.gone[g]; ok {
		return "; it ended at entry " + itoa(gone.seq)
	}
	return "; it was never dispatched"
}

// remember keeps what later entries are held against: rows that end here, and
// the heads that this entry binds.
func (a *auditor) remember(e *journal.Entry, f *facts) {
	for _, list := range [...][]journal.GUID{e.Ended, e.Withdrawn, e.Folded} {
		for _, g := range list {
			gone := goneRow{seq: e.Seq}
			if row := a.job.Rows[g]; row != nil {
				gone.turn = row.Turn
			}
			a.gone[g] = gone
		}
	}
	if b := e.Bound; b != nil {
		if _, twice := a.bounds[b.Chain]; twice || b.Chain != f.licence {
			a.at(V12, e, "the entry binds the effect chain %s, its request is %s, bound already: %t", b.Chain, f.licence, twice)
		}
		a.bounds[b.Chain] = bound{b.Head, e.Seq}
	} else if r := e.Response; r != nil && r.Kind == journal.ResponseTerminal && !r.Request.IsZero() {
		a.bounds[r.Request] = bound{seq: e.Seq} // an empty chain is bound too
	}
}

// originLaw checks that every message's id derives from what caused it (V11,
// C8): each message of the job then has its origin in the entry that
// dispatched it, and the start in the job's key.
func (a *auditor) originLaw(e *journal.Entry, f *facts) {
	for i := range e.Dispatched {
		d := &e.Dispatched[i]
		if !a.derives(e, d) {
			a.at(V11, e, "the id of %s %s for %s %s does not derive from message %s", d.Kind, d.GUID, d.Activity, d.DAD, e.GUID)
		}
	}
	if f.known != nil || f.start {
		return
	}
	switch row := a.job.Rows[f.licence]; {
	case e.Response != nil && !e.Response.Request.IsZero():
		if want := collation.ResponseGUID(e.Response.Request, e.Response.Turn); e.GUID != want {
			a.at(V11, e, "the response to turn %d of request %s has id %s, not %s", e.Response.Turn, e.Response.Request, want, e.GUID)
		}
	case e.Kind == journal.KindStale && row != nil && e.GUID != f.licence:
		if e.GUID != collation.ResponseGUID(f.licence, row.Turn) {
			a.at(V11, e, "the message %s does not derive from its request %s, turn %d", e.GUID, f.licence, row.Turn)
		}
	}
}

// derives checks the id of one dispatched message. Kinds whose ids come from
// outside this job's entries cannot be derived here.
func (a *auditor) derives(e *journal.Entry, d *journal.Dispatched) bool {
	switch d.Kind {
	case journal.MessageStart:
		return e.Kind != journal.KindCreated || d.GUID == e.Job.Start()
	case journal.MessageLeg1:
		return d.GUID == collation.Leg1GUID(e.GUID, d.Activity, collation.DAD(d.DAD))
	case journal.MessageRequest:
		return a.fromLeg1(e, func(leg1 journal.GUID) bool { return a.element(e, leg1, d.GUID) })
	case journal.MessageAnswer:
		return a.fromLeg1(e, func(leg1 journal.GUID) bool { return d.GUID == collation.ResponseGUID(leg1, 0) })
	}
	return true
}

// fromLeg1 tries the Leg1 messages that the entry handles: its own, and those
// folded into it.
func (a *auditor) fromLeg1(e *journal.Entry, match func(journal.GUID) bool) bool {
	return e.Leg == 1 && match(e.GUID) || slices.ContainsFunc(e.Folded, match)
}

// element tries the elements that the entry's requests can have.
func (a *auditor) element(e *journal.Entry, leg1, request journal.GUID) bool {
	for n := range e.Dispatched {
		if request == collation.RequestGUID(leg1, n) {
			return true
		}
	}
	return false
}
