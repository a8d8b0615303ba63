package replay

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

func (a *auditor) compareRows(came *arrivals) {
	for _, g := range sortedGUIDs(a.stored.Rows) {
		s := a.stored.Rows[g]
		if r := a.job.Rows[g]; r != nil {
			a.compareRow(g, &s, r)
		} else if !came.rows[g] {
			a.differs(V10, 0, ofMessage(TableDispatches, g, "", s.Kind, ""), "a %s row %s of %s %s is stored, but must not stand%s", s.Kind, g, s.Activity, s.DAD, a.fate(g))
		}
	}
	for _, g := range sortedGUIDs(a.job.Rows) {
		if _, ok := a.stored.Rows[g]; !ok {
			r := a.job.Rows[g]
			a.differs(V10, 0, ofMessage(TableDispatches, g, "", "", r.Kind), "no %s row %s of %s %s is stored, dispatched by entry %d and not ended", r.Kind, g, r.Activity, r.DAD, r.Origin)
		}
	}
}

// compareRow compares what entries tell of a row. No entry of this job tells who wrote a row
// that came from outside.
func (a *auditor) compareRow(g journal.GUID, s *collation.Row, r *Row) {
	untold := a.effectsUnseen != "" && r.Held == heldParked // its effects may have released it
	differ := func(is bool, c Check, column, what string, stored, rebuilt any) {
		if is {
			a.differs(c, 0, ofMessage(TableDispatches, g, column, stored, rebuilt),
				"the stored %s of row %s (%s %s) is %v, the entries give %v", what, g, r.Activity, r.DAD, stored, rebuilt)
		}
	}
	sum := journal.SumOf(s.Body)
	differ(s.Kind != r.Kind, V10, "kind", "kind", s.Kind, r.Kind)
	differ(s.Activity != r.Activity, V10, "activity", "activity", s.Activity, r.Activity)
	differ(s.DAD != r.DAD, V10, "dad", "address", s.DAD, r.DAD)
	differ(s.Kind == journal.MessageRequest && r.Kind == s.Kind && sum != r.Input, V10, "body", "input", sum, r.Input)
	differ(s.Element != r.Element, V10, "element", "element", s.Element, r.Element)
	differ(s.Held != r.Held && !untold, V10, "held", "reason for being held", s.Held, r.Held)
	differ(s.Origin != r.Origin && !r.Outside, V10, "origin", "origin", s.Origin, r.Origin)
	differ(s.Turn != r.Turn, V12, "turn", "turn", s.Turn, r.Turn)
	differ(s.Attempt != r.Attempt, V12, "attempt", "attempt", s.Attempt, r.Attempt)
	a.comparePauses(g, s, r)
}

// arrivals are stored rows that others wrote: messages on their way to this job that no entry
// mentions yet.
type arrivals struct {
	rows map[journal.GUID]bool
	// ended are the waits whose ending signal is on its way.
	ended map[journal.GUID]bool
}

// came finds the rows that came from outside and derive from what this job waits for: a signal
// from its wait, an outcome from its child. An interrupt may come from anywhere.
func (a *auditor) came() *arrivals {
	came := &arrivals{make(map[journal.GUID]bool), make(map[journal.GUID]bool)}
	for g, s := range a.stored.Rows {
		pause, p := a.job.resolvedWait(g)
		i := a.job.Instances[collation.InstanceKey{Activity: s.Activity, DAD: s.DAD}]
		switch {
		case s.Kind == journal.MessageInterrupt:
			came.rows[g] = s.Activity == ""
		case i == nil || a.job.Rows[g] != nil && !a.job.Rows[g].Outside: // an Outside row: a dead letter mentioned it
		case p != nil && p.Taken == 0 && pause == g && s.Kind == journal.MessageWakeUp && p.Kind == journal.PauseSignal:
			came.rows[g], came.ended[g] = true, true
		case p != nil && p.Taken == 0 && s.Kind == journal.MessageOutcome && p.Kind == journal.PauseChild:
			came.rows[g] = true
		case s.Kind == journal.MessageOutcome:
			_, turn := i.outcome(g)
			came.rows[g] = turn > 0 && turn == s.Turn
		case s.Kind == journal.MessageWakeUp:
			a.woken(came, g, &s, i)
		}
	}
	return came
}

// woken judges the row of a signal's delivery to a hook.
func (a *auditor) woken(came *arrivals, g journal.GUID, s *collation.Row, i *Instance) {
	r, err := journal.DecodeResponse(s.Body)
	if err != nil || r.By != journal.BySignal {
		return
	}
	wait := i.waitID()
	if a.job.Waits[wait] == nil && !a.gone[wait].wait {
		return // the hook never waited
	}
	if i.Repeat && g == journal.DeriveSignalled(wait, r.Signal) || !i.Repeat && g == wait {
		came.rows[g] = true
		came.ended[wait] = came.ended[wait] || r.Kind == journal.ResponseTerminal
	}
}

// compareWaits compares the waits (V13): each is stored, or the signal that ends it is on its
// way.
func (a *auditor) compareWaits(came *arrivals) {
	for _, g := range sortedGUIDs(a.stored.Waits) {
		s := a.stored.Waits[g]
		w := a.job.Waits[g]
		if w == nil {
			a.differs(V13, 0, ofMessage(TableWaits, g, "", s.Topic, ""), "wait %s of %s %s for signal %s is stored, but must not stand%s", g, s.Activity, s.DAD, s.Topic, a.fate(g))
			continue
		}
		differ := func(is bool, column, what string, stored, rebuilt any) {
			if is {
				a.differs(V13, 0, ofMessage(TableWaits, g, column, stored, rebuilt),
					"the stored %s of wait %s (%s %s) is %v, the entries give %v", what, g, s.Activity, s.DAD, stored, rebuilt)
			}
		}
		differ(s.Activity != w.Activity, "activity", "activity", s.Activity, w.Activity)
		differ(s.DAD != w.DAD, "dad", "address", s.DAD, w.DAD)
		differ(s.Topic != w.Topic, "topic", "topic", s.Topic, w.Topic)
		differ(s.Key != w.Key, "key", "key", s.Key, w.Key)
		differ(s.Repeat != w.Repeat, "repeat", "repetition", s.Repeat, w.Repeat)
		differ(s.Request != w.Request, "request", "request", s.Request, w.Request)
		differ(s.Origin != w.Origin, "origin", "origin", s.Origin, w.Origin)
		differ(s.Count < w.Last, "count", "number of the last signal", s.Count, w.Last)
		if came.ended[g] {
			a.differs(V13, 0, ofMessage(TableWaits, g, "", s.Topic, ""), "wait %s of %s %s is stored, and so is the signal that ended it", g, s.Activity, s.DAD)
		}
	}
	for _, g := range sortedGUIDs(a.job.Waits) {
		if _, ok := a.stored.Waits[g]; !ok && !came.ended[g] {
			w := a.job.Waits[g]
			a.differs(V13, 0, ofMessage(TableWaits, g, "", "", w.Topic), "no wait %s of %s %s for signal %s is stored, registered by entry %d and not ended", g, w.Activity, w.DAD, w.Topic, w.Origin)
		}
	}
}
