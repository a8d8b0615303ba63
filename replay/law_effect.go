package replay

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// effect judges an entry of an effect chain by the state before it (V8, V10, V12).
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
	if e.GUID != e.Chain || !bare(e) {
		a.at(V8, e, "an entry of effect %q says more than that", e.Effect.Name)
	}
	a.releasedLaw(e)
	a.effectOnce(e)
	a.effectInTurn(e)
}

// bare reports whether an effect's entry does nothing else. It may have the activity and
// address of its request, and the row that it released (E4).
func bare(e *journal.Entry) bool {
	return len(e.Marks)+len(e.Joins)+len(e.Dispatched)+len(e.Waits)+
		len(e.Cancelled)+len(e.CancelledByClose)+e.Abandoned == 0 &&
		e.Ledger == 0 && e.Receipt == 0 && e.Ended.IsZero() && e.Semaphore == nil && e.Open == nil &&
		e.Elements == nil && e.Response == nil && e.Result == nil && e.Close == nil &&
		e.Bound == nil && e.Flow == nil && e.Parent == nil && e.Input == nil && e.Operator == nil && e.Trouble == nil
}

// effectOnce checks starts and results of one key (V8, E3–E5).
func (a *auditor) effectOnce(e *journal.Entry) {
	x := e.Effect
	a.placeLaw(e, x)
	known := a.job.Effects[x.Key]
	a.findingLaw(e, known)
	if known == nil {
		if e.Kind != journal.KindEffectStarted && needsStart[x.Class] && x.Taken == nil {
			a.at(V8, e, "effect %q of class %s ends without a start, key %s", x.Name, x.Class, x.Key)
		}
		return
	}
	if x.Taken != nil {
		a.at(V8, e, "effect %q is taken over after it has begun here, key %s", x.Name, x.Key)
	}
	if voids(e) && known.State == EffectCompleted {
		if !a.judged[x.Key].retry {
			a.at(V8, e, "the result of effect %q is taken back, which no operator asked for, key %s", x.Name, x.Key)
		}
	} else if known.State != EffectStarted {
		a.at(V8, e, "effect %q has a result already (%s), key %s", x.Name, known.State, x.Key)
	}
	if known.Name != x.Name || known.Class != x.Class || known.N != x.N || known.Request != e.Chain ||
		known.Position != x.Position {
		a.at(V8, e, "effect %q of class %s, n %d, at %q began as %q of class %s, n %d, at %q in chain %s, key %s",
			x.Name, x.Class, x.N, x.Position, known.Name, known.Class, known.N, known.Position, known.Request, x.Key)
	}
}

// findingLaw checks how the outcome of an effect came to be known (V8, 3.3). Only the unknown outcome of
// a guarded call is asked about. A run that takes such a call over does not make it again, so it
// cannot know the outcome by itself: a verifier or a person has told it.
func (a *auditor) findingLaw(e *journal.Entry, known *Effect) {
	x, f := e.Effect, e.Effect.Finding
	_, judged := a.judged[x.Key]
	takes := known != nil && known.State == EffectStarted && e.Kind != journal.KindEffectStarted &&
		x.Fence > known.Fence
	switch {
	case f == nil && takes && x.Class == classGuarded && !judged:
		a.at(V8, e, "effect %q was begun by another run, and the entry does not say who found its outcome, key %s", x.Name, x.Key)
	case f == nil:
	case x.Class != classGuarded || known == nil || e.Kind == journal.KindEffectStarted || x.Taken != nil:
		a.at(V8, e, "a verifier is named for effect %q of class %s, which nobody asks one about, key %s", x.Name, x.Class, x.Key)
	case f.Verifier == "" || f.Asked <= 0 || f.Took < 0:
		a.at(V8, e, "the finding about effect %q does not say which verifier was asked, and when, key %s", x.Name, x.Key)
	case f.Error != "" && takes:
		a.at(V8, e, "the finding about effect %q has an error of a call that another run made, key %s", x.Name, x.Key)
	}
}

// classGuarded is the class of effects that are not called again by themselves (E3).
const classGuarded = "guarded"

// needsStart are the classes of effects that have a start entry before their end.
var needsStart = set("idempotent", "guarded", ClassUndo)

// place is a call's place in a durable function.
type place struct {
	request  journal.GUID
	position string
}

// placeLaw checks that each place of a function makes one call (E15).
func (a *auditor) placeLaw(e *journal.Entry, x *journal.Effect) {
	if x.Position == "" {
		return
	}
	at := place{e.Chain, x.Position}
	if name, ok := a.calls[at]; ok && name != x.Name {
		a.at(V8, e, "effect %q stands at position %s, which is that of effect %q", x.Name, x.Position, name)
	}
	a.calls[at] = x.Name
}

// effectInTurn checks an effect against its request (V8, V12, J8). An activity and an address that
// the entry names are those of the request. The request must have had the turn, and behind the
// head that its terminal response bound the entry must be late. Before that head, late marks the
// end of an effect whose holder was replaced.
func (a *auditor) effectInTurn(e *journal.Entry) {
	x := e.Effect
	row, gone := a.job.Rows[e.Chain], a.gone[e.Chain]
	key, turn := gone.key, gone.turn
	if row != nil {
		key, turn = row.key(), row.Turn
	}
	if row == nil && gone.seq == 0 {
		a.at(V10, e, "effects of request %s, which was never dispatched", e.Chain)
		return
	}
	if at := (collation.InstanceKey{Activity: e.Activity, DAD: collation.DAD(e.DAD)}); at != key &&
		at != (collation.InstanceKey{}) {
		a.at(V8, e, "effect %q says that it is one of %s %s, its request is one of %s %s", x.Name, at.Activity, at.DAD, key.Activity, key.DAD)
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

// judgement is what an operator said of an effect (3.3).
type judgement struct {
	seq     int64
	request journal.GUID
	effect  journal.Effect
	retry   bool
}

// judge records what an operator's entry says of an effect.
func (a *auditor) judge(e *journal.Entry) {
	x := e.Effect
	if x == nil || e.Operator == nil || len(e.Updated) == 0 {
		return
	}
	if row := a.job.Rows[e.Updated[0].GUID]; row != nil && row.Turn != x.Turn {
		a.at(V12, e, "an operator acted on effect %q in turn %d, the request is in turn %d", x.Name, x.Turn, row.Turn)
	}
	j := a.judged[x.Key]
	a.judged[x.Key] = judgement{
		seq: e.Seq, request: e.Updated[0].GUID, effect: *x, retry: j.retry || e.Operator.Action == actionRetry,
	}
}

// actionRetry is the operator's action that lets an effect run again.
const actionRetry = "retry"

// judgedLaw checks that operators spoke of effects that the request has (V8).
func (a *auditor) judgedLaw() {
	for _, key := range sortedDigests(a.judged) {
		j := a.judged[key]
		f, x := a.job.Effects[key], &j.effect
		if f == nil || f.Request != j.request || f.Name != x.Name || f.Class != x.Class || f.N != x.N ||
			f.Position != x.Position {
			a.report(V8, journal.MainChain, j.seq, "an operator acted on effect %q of class %s, n %d, key %s, which request %s does not have",
				x.Name, x.Class, x.N, key, j.request)
		}
	}
}
