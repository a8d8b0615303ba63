package collation

// This is what an operator says of an effect. It reads all effects of the request, and the
// reason of the dead letter. It decides which effect is meant, and what becomes of it. It
// writes the effect, and its outcome on the request's chain (3.3).

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/journal"
)

// Decision is what an action does to one effect.
type Decision string

// The decisions. All but the first change the effect that Judge returns.
const (
	LeaveEffects  Decision = ""         // no effect is meant
	EffectUndone  Decision = "not done" // an unfinished one gets the outcome not done
	EffectDone    Decision = "done"     // an unfinished one gets the result of the action
	EffectVoided  Decision = "voided"   // a completed one becomes not done
	EffectVouched Decision = "vouched"  // a completed one is confirmed
)

// Judge says what a retry or a done does to the effects of its request (3.3). If the action
// names no effect, it means the only one in doubt, and the dead letter's reason says which can
// be. Of an unknown outcome it is an unfinished Guarded effect; for done it may also be an
// unfinished Idempotent one, or a completed one that a verifier may doubt. Of a verifier's doubt
// done means such a completed one, of a compensation the one that runs now. For other reasons
// no effect is in doubt, and a retry only releases the row. A completed effect is confirmed with
// its own result, or with null for whatever it is. A retry voids no effect that it does not name.
// ErrAction: several are in doubt (the error lists them), or the action does not fit.
func (a *Action) Judge(reason string, effects []EffectRow) (Decision, *EffectRow, error) {
	if a.Effect != (journal.Digest{}) {
		for i := range effects {
			if effects[i].Key == a.Effect {
				return a.decide(&effects[i])
			}
		}
		return LeaveEffects, nil, misfit("the request has no effect with the key %s; it has %s",
			a.Effect, list(effects))
	}
	for _, doubt := range a.doubts(reason, effects) {
		var found []EffectRow
		for i := range effects {
			if doubt(&effects[i]) {
				found = append(found, effects[i])
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return a.decide(&found[0])
		default:
			return LeaveEffects, nil, misfit("%d effects are in doubt, name one of them by its key: %s",
				len(found), list(found))
		}
	}
	if a.Done != nil {
		return LeaveEffects, nil, misfit("it asks about no effect, name the one that is meant; the request has %s", list(effects))
	}
	return LeaveEffects, nil, nil
}

// judge records what the operator says of an effect: the action's entry names the effect, and
// the request's chain gets its outcome (3.3).
func (w *writer) judge(row *Row, reason string, a *Action, record []EffectRow) error {
	decision, met, err := a.Judge(reason, record)
	if err != nil || decision == LeaveEffects {
		return err
	}
	f := Effect{EffectRow: *met, Request: row.GUID, Turn: row.Turn}
	f.Live = false
	e := journal.Effect{Key: f.Key, Name: f.Name, Class: f.Class, N: f.N, Position: f.Position, Turn: row.Turn}
	named := e
	w.p.Entry.Effect = &named
	e.Fence = f.Fence
	x := &ChainWrite{Request: row.GUID, Row: row, Completed: decision == EffectVoided || decision == EffectVouched}
	kind := journal.KindEffectFailed
	switch decision {
	case EffectUndone:
		f.State, e.Error = EffectNotDone, &journal.Failure{Class: FailureOperator, Message: a.Reason}
	case EffectVoided:
		f.State, f.Vouched, e.Error = EffectNotDone, false, &journal.Failure{Class: FailureVoided, Message: a.Reason}
	case EffectDone:
		kind, f.State, f.Vouched, e.Result = journal.KindEffectCompleted, EffectCompleted, true, slices.Clone(a.Done)
	case EffectVouched:
		f.Vouched = true
	}
	if decision != EffectVouched { // vouched: the recorded outcome stays
		f.Result, f.Error = e.Result, e.Error
		c := Chain{Job: w.s.Job, Request: row.GUID, Head: row.Effects, Now: w.s.Now}
		c.record(x, kind, w.mode.Writer, &e, w.mode)
	}
	x.Effect, x.Row = f, nil // the plan writes the row anyway
	w.p.Chain = x
	return nil
}

// doubts lists, in order of preference, which effects an action without a name may mean.
func (a *Action) doubts(reason string, effects []EffectRow) []func(*EffectRow) bool {
	switch {
	case a.Done != nil && reason == ClassUndo: // in a compensating job they are Idempotent
		return []func(*EffectRow) bool{running(effects), unfinished(ClassIdempotent)}
	case a.Done != nil && reason == ClassConfirm:
		return []func(*EffectRow) bool{doubtful}
	case a.Done != nil && reason == HeldParked:
		return []func(*EffectRow) bool{unfinished(ClassGuarded), unfinished(ClassIdempotent), doubtful}
	case reason == HeldParked:
		return []func(*EffectRow) bool{unfinished(ClassGuarded)}
	}
	return nil
}

// decide says what the action does to the effect that it means.
func (a *Action) decide(f *EffectRow) (Decision, *EffectRow, error) {
	started, completed := f.State == EffectStarted, f.State == EffectCompleted
	external := f.Class == ClassGuarded || f.Class == ClassIdempotent
	switch {
	case a.Retry && started && external:
		return EffectUndone, f, nil
	case a.Retry && completed && external:
		return EffectVoided, f, nil
	case a.Done != nil && started:
		return EffectDone, f, nil
	case a.Done != nil && completed && external:
		if string(a.Done) != "null" && !bytes.Equal(a.Done, f.Result) {
			return LeaveEffects, nil, misfit("effect %s (%s) has another result, and results are written once: "+
				"confirm it with the recorded one, or with null, or retry it", f.Name, f.Key)
		}
		return EffectVouched, f, nil
	}
	return LeaveEffects, nil, misfit("effect %s is %s, of class %s: %s means nothing of it",
		f.Name, strings.ReplaceAll(string(f.State), "_", " "), f.Class, a.Name())
}

func unfinished(class string) func(*EffectRow) bool {
	return func(f *EffectRow) bool { return f.State == EffectStarted && f.Class == class }
}

// running matches the compensation that runs now: of those that have not run, the one that was
// registered last.
func running(effects []EffectRow) func(*EffectRow) bool {
	last := journal.Digest{}
	for i := range effects {
		if f := &effects[i]; f.Class == ClassUndo && f.State == EffectStarted {
			last = f.Key
		}
	}
	return func(f *EffectRow) bool { return f.Class == ClassUndo && f.Key == last }
}

// doubtful matches completed effects that a verifier may be asked about.
func doubtful(f *EffectRow) bool {
	return f.State == EffectCompleted && f.Error == nil && !f.Vouched &&
		(f.Class == ClassGuarded || f.Class == ClassIdempotent)
}

// maxListed bounds the effects that an error lists.
const maxListed = 20

func list(effects []EffectRow) string {
	if len(effects) == 0 {
		return "none"
	}
	var b strings.Builder
	for i := range effects {
		if i == maxListed {
			fmt.Fprintf(&b, " and %d more", len(effects)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%s)", effects[i].Name, effects[i].Key)
	}
	return b.String()
}
