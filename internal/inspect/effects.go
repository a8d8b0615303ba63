package inspect

import (
	"slices"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// effects gathers the effects of a job from the chains of its requests, and what operators said of them.
type effects struct {
	list []view.Effect
	at   map[journal.Digest]int
	said []*journal.Entry // by operators, in the main chain, which comes first
	by   []string         // who wrote them
}

func newEffects() *effects { return &effects{at: map[journal.Digest]int{}} }

func (f *effects) add(e *journal.Entry, writer string) {
	switch {
	case e.Effect == nil:
	case e.Chain.IsZero():
		f.said, f.by = append(f.said, e), append(f.by, writer)
	default:
		f.tell(e, writer)
	}
}

// tell adds an entry of a request's chain.
func (f *effects) tell(e *journal.Entry, writer string) {
	n, known := f.at[e.Effect.Key]
	if !known {
		n = len(f.list)
		f.at[e.Effect.Key] = n
		f.list = append(f.list, view.Effect{
			Key: e.Effect.Key, Name: e.Effect.Name, Request: e.Chain, Activity: e.Activity, Address: e.DAD,
		})
	}
	x := &f.list[n]
	if x.Activity == "" { // a late entry does not name the instance
		x.Activity, x.Address = e.Activity, e.DAD
	}
	if e.Effect.Class != "" {
		x.Class = e.Effect.Class
	}
	if e.Effect.Position != "" {
		x.Position = e.Effect.Position
	}
	x.NotDone = e.Effect.N
	switch e.Kind {
	case journal.KindEffectStarted:
		x.State = view.EffectStarted
	case journal.KindEffectCompleted:
		x.State, x.Error, x.Result = view.EffectCompleted, view.FailureOf(e.Effect.Error), nil
		if e.Effect.Result != nil && e.Effect.Error == nil && e.Effect.Name != "undo" {
			x.Result = &view.Value{JSON: e.Effect.Result}
		}
	case journal.KindEffectFailed:
		x.State, x.Error, x.Result = view.EffectNotDone, view.FailureOf(e.Effect.Error), nil
	}
	x.Entries = append(x.Entries, effectEntryOf(e, writer))
}

// effectEntryOf describes an entry about an effect. writer is the process that wrote it.
func effectEntryOf(e *journal.Entry, writer string) view.EffectEntry {
	out := view.EffectEntry{Kind: e.Kind, Entry: e.Seq, Time: moment(e.Time), By: writer}
	if f := e.Effect; f != nil {
		out.Turn, out.Fence, out.Late = f.Turn, f.Fence, f.Late
		if x := f.Finding; x != nil {
			out.Finding = &view.Finding{
				Verifier: x.Verifier, Error: x.Error, Asked: moment(x.Asked), Took: view.Duration(micros(x.Took)),
				Note: x.Note,
				Text: found(x),
			}
		}
	}
	if o := e.Operator; o != nil {
		out.By, out.Action, out.Reason = o.Who, o.Action, o.Reason
	}
	return out
}

// all are the effects with the entries that tell of them: those of the request's chain, then those of
// operators.
func (f *effects) all() []view.Effect {
	all := slices.Clone(f.list)
	for n, e := range f.said {
		if at, known := f.at[e.Effect.Key]; known {
			all[at].Entries = append(slices.Clip(all[at].Entries), effectEntryOf(e, f.by[n]))
		}
	}
	return all
}

// addEffects puts the effects into a job: those of the tables with the entries that tell of them. Of
// the past, only entries tell.
func (f *fold) addEffects(job *view.Job, past bool) {
	told := f.effects.all()
	for i := range told {
		if r := f.teller.requests[told[i].Request]; r != nil {
			told[i].Element = r.index()
		}
	}
	if past {
		job.Effects = told
		return
	}
	for i := range job.Effects {
		x := &job.Effects[i]
		if at, known := f.effects.at[x.Key]; known {
			x.Element, x.Entries = told[at].Element, told[at].Entries
		}
	}
}
