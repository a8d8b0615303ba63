package replay

import (
	"strconv"

	"github.com/quipu-journal/quipu/journal"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// turnLaw checks turns and tries (V12, E7, E8): a response is to the turn of its
// row, an outcome to that of its await. A pending one that is done raises the
// turn by one, and the try with it after a failed try; a failed child brings the
// start of the next. Nothing else moves them, and only what ends or passes an
// activity decides transitions (C12).
func (a *auditor) turnLaw(e *journal.Entry, f *facts) {
	a.inTurn(e, f)
	raised := false
	for i := range e.Updated {
		u := &e.Updated[i]
		row := a.job.Rows[u.GUID]
		if row == nil {
			continue
		}
		turn, try := row.Turn, row.Try
		if f.stays && u.GUID == f.licence {
			raised = true
			turn++
			if f.kind == journal.ResponseFailedTry {
				try++
			}
		}
		if u.Turn != turn || u.Try != try {
			a.at(V12, e, "row %s goes from turn %d, try %d to turn %d, try %d; the entry allows turn %d, try %d",
				u.GUID, row.Turn, row.Try, u.Turn, u.Try, turn, try)
		}
	}
	if f.stays && !raised {
		a.at(V12, e, "a pending response of kind %s is done, but the turn of row %s stays", f.kind, f.licence)
	}
	a.nextChild(e, f)
}

// inTurn checks the turn and try that a response says.
func (a *auditor) inTurn(e *journal.Entry, f *facts) {
	r := e.Response
	if r != nil && r.RetryAfter != 0 && r.Kind == journal.ResponseTerminal {
		a.at(V12, e, "a terminal response asks for a further try after %d µs", r.RetryAfter)
	}
	if r == nil || f.row == nil {
		return
	}
	turn, try, of := f.row.Turn, f.row.Try, "the row "+f.licence.String()
	if f.row.Kind == journal.MessageOutcome && f.inst != nil {
		turn, try, of = f.inst.Turn, f.inst.Try, "the await"
	}
	if r.Turn != turn || r.Try != try {
		a.at(V12, e, "the response is to turn %d, try %d; %s is at turn %d, try %d", r.Turn, r.Try, of, turn, try)
	}
}

// nextChild checks that a failed child that is not the last brings one start,
// and that no other pending response brings any.
func (a *auditor) nextChild(e *journal.Entry, f *facts) {
	if (f.pending || f.partial) && e.Result != nil {
		a.at(V12, e, "a response that leaves %s %s open gives it a result", f.key.Activity, f.key.DAD)
	}
	if !f.pending {
		return
	}
	starts := 0
	for i := range e.Dispatched {
		if e.Dispatched[i].Kind == journal.MessageStart {
			starts++
		}
	}
	want := 0
	if f.message == journal.MessageOutcome {
		want = 1
	}
	if starts != want {
		a.at(V12, e, "a pending %s of kind %s starts %d children, it has to start %d", f.message, f.kind, starts, want)
	}
}

// effect judges an entry of a chain of effects by the state before it (V8,
// V10, V12).
func (a *auditor) effect(e *journal.Entry) {
	switch e.Kind {
	case journal.KindEffectStarted, journal.KindEffectCompleted, journal.KindEffectFailed:
	default:
		a.at(V8, e, "an entry of kind %s in a chain of effects", e.Kind)
		return
	}
	if e.Effect == nil {
		a.at(V8, e, "an entry of kind %s without an effect", e.Kind)
		return
	}
	a.effectOnce(e)
	a.effectInTurn(e)
}

// effectOnce checks starts and results of one key (V8, E3–E5).
func (a *auditor) effectOnce(e *journal.Entry) {
	x := e.Effect
	known := a.job.Effects[x.Key]
	if known == nil {
		external := x.Class == "idempotent" || x.Class == "guarded"
		if e.Kind != journal.KindEffectStarted && external {
			a.at(V8, e, "effect %q of class %s ends without a start, key %s", x.Name, x.Class, x.Key)
		}
		return
	}
	if known.State != EffectStarted {
		a.at(V8, e, "effect %q has a result already (%s), key %s", x.Name, known.State, x.Key)
	}
	if known.Name != x.Name || known.Class != x.Class || known.N != x.N || known.Request != e.Chain {
		a.at(V8, e, "effect %q of class %s, n %d began as %q of class %s, n %d in chain %s, key %s",
			x.Name, x.Class, x.N, known.Name, known.Class, known.N, known.Request, x.Key)
	}
}

// effectInTurn checks an effect against its request (V12, J8): of a turn that
// the request had, and late behind the head that its terminal response bound.
// Before it, late marks the end of an effect whose holder was taken over.
func (a *auditor) effectInTurn(e *journal.Entry) {
	x := e.Effect
	row, gone := a.job.Rows[e.Chain], a.gone[e.Chain]
	turn := gone.turn
	if row != nil {
		turn = row.Turn
	}
	if row == nil && gone.seq == 0 {
		a.at(V10, e, "effects of request %s, which was never dispatched", e.Chain)
		return
	}
	if x.Turn < 1 || x.Turn > turn {
		a.at(V12, e, "effect %q belongs to turn %d, the request had turns 1 to %d", x.Name, x.Turn, turn)
	}
	if b, ok := a.bounds[e.Chain]; ok && e.Seq > b.head.Seq && !x.Late {
		a.at(V12, e, "effect %q stands behind the head %d that entry %d of the main chain binds, and is not late",
			x.Name, b.head.Seq, b.seq)
	}
	if x.Late && e.Kind == journal.KindEffectStarted {
		a.at(V12, e, "effect %q starts late: only the end of one that had started may be", x.Name)
	}
}
