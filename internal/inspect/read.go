package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/inspect/spans"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// reading makes one view of a job.
type reading struct {
	*Reader

	want    Want
	now     *store.JobView // what the tables have now
	why     explain.Job    // what explains the state that is shown
	effects []store.JobEffect
	kept    *kept // the journal; nil: it was not read
	fold    *fold // of the journal, up to the entry that is shown
	job     *view.Job
}

func (x *reading) read(ctx context.Context) error {
	v, want := x.now, &x.want
	expired := v.State == journal.JobExpired
	switch {
	case expired && want.strict():
		return fmt.Errorf("job %q: %w", v.Key, ErrTombstone)
	case want.At > v.Head.Seq:
		return fmt.Errorf("%w: job %q has %d, not %d", ErrPast, v.Key, v.Head.Seq, want.At)
	}
	if !expired {
		if err := x.beside(ctx); err != nil {
			return err
		}
	}
	if want.Reasons && want.At == 0 {
		if err := x.living(ctx, &x.why); err != nil {
			return err
		}
	}
	failed := x.journal(ctx, expired)
	if failed != nil && (want.strict() || !errors.Is(failed, errSilent)) {
		return failed
	}
	x.job = x.tables()
	if failed != nil {
		x.job.HistoryError = failed.Error()
	}
	if x.fold != nil {
		x.told()
	}
	return x.explained(ctx)
}

// beside reads the effects and the flow.
func (x *reading) beside(ctx context.Context) (err error) {
	deep := x.want.deep()
	if x.want.Effects || deep {
		if x.effects, err = x.JobEffects(ctx, x.now.ID); err != nil {
			return err
		}
	}
	if x.want.Graph || x.want.Reasons || deep {
		x.why.Flow, err = x.flow(ctx, x.now.Flow)
	}
	_, changed := errors.AsType[*store.ChangedError](err)
	if gone := errors.Is(err, store.ErrNotFound); (changed || gone) && !x.want.strict() {
		return nil // what else there is of the job is shown all the same
	}
	return err
}

// errSilent is wrapped by the errors that say why a journal cannot be read, although the job can.
var errSilent = errors.New("the journal is not read")

// silent is such an error. Its text is its own.
type silent struct{ error }

// Unwrap gives errSilent, and what it says.
func (s silent) Unwrap() []error { return []error{errSilent, s.error} }

// journal reads the journal, if it is wanted, and folds it up to the entry that is shown.
func (x *reading) journal(ctx context.Context, expired bool) (err error) {
	want := &x.want
	switch {
	case !want.deep():
		return nil
	case expired:
		return silent{ErrTombstone}
	}
	most := MaxHistory
	if want.Quick && want.At == 0 {
		most = Short
	}
	if want.Tree {
		if err := x.traceable(x.now.Head.Seq); err != nil {
			return err
		}
	}
	x.kept, err = x.shelf.journal(ctx, x, most)
	switch {
	case err != nil:
		return err
	case x.kept == nil:
		return nil
	case x.kept.long != "":
		return silent{&LongError{fmt.Sprintf("the journal has over %s: read it with quipu export", x.kept.long)}}
	case want.Tree:
		if err := x.traceable(int64(len(x.kept.entries))); err != nil {
			return err
		}
	}
	return x.folded(ctx)
}

// folded folds the entries that are shown.
func (x *reading) folded(ctx context.Context) error {
	parts := parts{
		events:   x.want.Journal || x.want.Events || x.want.Effects && x.want.At > 0,
		messages: x.want.Messages, tree: x.want.Tree,
	}
	if x.want.At > 0 {
		f := x.newFold(ctx, parts)
		for i, e := range x.kept.entries {
			if main := e.Chain.IsZero(); main && e.Seq > x.want.At ||
				!main && (f.state.at == nil || e.Time > f.state.at.Time) {
				continue
			}
			if err := f.add(e, x.kept.writers[i]); err != nil {
				return err
			}
		}
		if f.state.at == nil || f.state.at.Seq != x.want.At { // the journal has changed since the job was read
			return fmt.Errorf("%w: job %q has none of number %d", ErrPast, x.now.Key, x.want.At)
		}
		if err := f.grow(ctx, x); err != nil {
			return err
		}
		x.fold, x.why.Now = f, collation.Micros(f.state.at.Time)
		x.why.Find = x.finder(ctx)
		return nil
	}
	var err error
	x.fold, err = x.kept.told(ctx, x, parts)
	x.shelf.trim() // what it says is known only now
	return err
}

// tables describes what the tables have, now or, as entries tell it, at the entry that is shown.
func (x *reading) tables() *view.Job {
	v := x.now
	if x.want.At > 0 {
		v = x.fold.view(v)
	}
	x.why.View = v
	job := Describe(v)
	if x.want.Graph || x.why.Flow != nil {
		job.Graph = explain.Survey(&x.why)
	}
	states := explain.States(&x.why)
	for i := range job.Activities {
		a := &job.Activities[i]
		a.State = states[instanceKey(a.Activity, a.Address)]
	}
	if x.want.At > 0 {
		e := x.fold.state.at
		job.At = &view.Point{
			Entry: e.Seq, Of: x.now.Head.Seq, Kind: e.Kind, Time: moment(e.Time), Activity: e.Activity, Address: e.DAD,
		}
		job.Head = journal.Digest{}
	}
	if x.want.At == 0 { // those of the past are told by entries
		for i := range x.effects {
			job.Effects = append(job.Effects, effectOf(&x.effects[i]))
		}
	}
	job.HistoryLeft = x.want.Quick && x.kept == nil && x.now.State != journal.JobExpired
	return job
}

// told adds what the journal tells.
func (x *reading) told() {
	f, job := x.fold, x.job
	if f.teller != nil {
		events := f.teller.events()
		job.Input = f.input
		job.Activities = f.activities(job, events)
		f.addEffects(job, x.want.At > 0)
		if x.want.Events {
			job.Events = events
		}
	}
	job.Obligations, job.Pauses, job.Children = f.state.obligationList(), f.state.pauseList(), f.state.childList()
	if x.want.Messages {
		job.Messages = f.messages.all(job.Messages)
	}
	if x.want.Tree {
		tree := *f.tree // its spans may be sorted
		job.Tree = &tree
	}
}

// explained adds what the job waits for, or how it ended.
func (x *reading) explained(ctx context.Context) error {
	if !x.want.Reasons || x.want.At > 0 {
		return nil
	}
	if s := x.now.State; s != journal.JobOpen && s != journal.JobExpired && (x.fold != nil || !x.want.Lenient) {
		if err := x.closer(ctx); err != nil {
			return err
		}
	}
	if x.want.Hidden {
		v := *x.why.View
		v.Output, x.why.View = nil, &v
	}
	x.job.Reasons = explain.Why(&x.why)
	return nil
}

// maxOutcomes bounds the failed children that are compared with the error of the job.
const maxOutcomes = 1000

// closer looks up the entry that closed or quarantined the job, and which child had failed.
func (x *reading) closer(ctx context.Context) error {
	var outcomes []*journal.Entry
	add := func(e *journal.Entry) (found bool) {
		if r := e.Response; r != nil && !r.Child.IsZero() && r.Code != collation.CodeOK {
			if outcomes = append(outcomes, e); len(outcomes) > maxOutcomes {
				outcomes = outcomes[1:]
			}
		}
		if found = e.Kind == journal.KindQuarantine || slices.Contains(e.Marks, journal.MarkClosed); found {
			x.why.Last = e
		}
		return found
	}
	if x.kept != nil && x.kept.long == "" {
		_ = slices.ContainsFunc(x.kept.entries, add)
	} else {
		for e, err := range Journal(ctx, x.Source, x.now.ID) {
			if err != nil {
				return err
			}
			if add(e) {
				break
			}
		}
	}
	x.why.Child = explain.PassedOn(x.now.Error, outcomes)
	return nil
}

// parts are what a fold makes beside the state. With the events come the effects and the digits.
type parts struct{ events, messages, tree bool }

func (p parts) have(q parts) bool { return p.with(q) == p }

func (p parts) with(q parts) parts {
	return parts{p.events || q.events, p.messages || q.messages, p.tree || q.tree}
}

// fold takes the entries of a job, the main chain first, and gathers what is shown of them.
type fold struct {
	parts    parts
	state    *state
	flow     *flow.Flow // nil: this build cannot read it
	teller   *teller
	messages *messages
	spans    *spans.Builder
	tree     *view.Tree
	effects  *effects
	ledgers  ledgers
	input    *view.Value
	beside   int64 // bytes of outputs that are stored beside the entries
	cut      bool  // outputs were left out, because there are too many bytes of them
}

// newFold makes a fold. ctx holds while entries are added.
func (x *reading) newFold(ctx context.Context, p parts) *fold {
	f := &fold{parts: p, state: newState(x.now.ID), flow: x.why.Flow}
	if p.messages {
		f.messages = newMessages(f.state)
	}
	if p.tree {
		f.spans = spans.New()
	}
	if !p.events {
		return f
	}
	f.effects, f.ledgers = newEffects(), ledgers{}
	f.teller = newTeller(x.why.Flow, func(d journal.Digest) ([]byte, error) {
		if f.beside > maxAttachments && !x.want.AnySize {
			f.cut = true
			return nil, fmt.Errorf("not read: the outputs of this job have over %d MiB; quipu export has them all", maxAttachments>>20)
		}
		text, err := x.Payload(ctx, x.now.ID, d)
		f.beside += int64(len(text))
		return text, err
	}, f.state)
	return f
}

// add takes the next entry.
func (f *fold) add(e *journal.Entry, writer string) error {
	if err := f.state.apply(e); err != nil {
		return err
	}
	if f.teller != nil {
		f.teller.add(e)
		f.effects.add(e, writer)
		f.ledgers.add(e, writer)
	}
	if f.messages != nil && e.Chain.IsZero() {
		f.messages.add(e)
	}
	if f.spans != nil {
		f.spans.Add(e)
	}
	if e.Kind == journal.KindCreated && e.Input != nil {
		f.input = &view.Value{JSON: e.Input}
	}
	return nil
}

// Trace returns the tree of spans of a job that was read, from its journal alone (O2). It keeps nothing.
// What has ended of the tree is the same in every later one. Errors: store.ErrNotFound, ErrTombstone,
// *LongError.
func Trace(ctx context.Context, s Source, v *store.JobView) (*view.Tree, error) {
	x := &reading{Reader: New(s, nil, nil), want: Want{AnySize: true}, now: v}
	if err := x.traceable(v.Head.Seq); err != nil {
		return nil, err
	}
	k, err := x.entries(ctx)
	if err != nil {
		return nil, err
	}
	if k.long != "" || len(k.entries) > MaxTrace {
		return nil, x.traceable(MaxTrace + 1)
	}
	f := &fold{spans: spans.New()}
	for _, e := range k.entries {
		f.spans.Add(e)
	}
	err = f.grow(ctx, x)
	return f.tree, err
}

// traceable refuses a journal of so many entries that no tree is made of it.
func (x *reading) traceable(entries int64) error {
	if entries <= MaxTrace {
		return nil
	}
	return &LongError{fmt.Sprintf("the journal of job %q has over %d entries: no trace is made of it", x.now.Key, MaxTrace)}
}
