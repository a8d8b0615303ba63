package quiputest

import (
	"context"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// DeadLetter is a message that needs a person (E10).
type DeadLetter struct {
	view.DeadLetter

	w      *World
	row    journal.GUID   // of the message
	effect journal.Digest // the effect that is meant; zero: the only one in doubt
}

// who answers dead letters, as the journal names it.
const who = "quiputest"

// DeadLetters lists the open ones, the oldest first.
func (w *World) DeadLetters() []*DeadLetter {
	w.t.Helper()
	views, err := w.store.DeadLetters(context.Background(), store.DeadFilter{Limit: store.MaxPage})
	if err != nil {
		w.t.Fatalf("list the dead letters: %v", err)
	}
	slices.Reverse(views)
	out := make([]*DeadLetter, len(views))
	for i := range views {
		v := &views[i]
		out[i] = &DeadLetter{DeadLetter: inspect.LetterOf(v), w: w, row: v.Letter.Row}
	}
	return out
}

// DeadLetter waits until the job has an open dead letter, and returns the oldest.
func (j *Job) DeadLetter() *DeadLetter {
	j.w.t.Helper()
	var found *DeadLetter
	err := j.w.until(func() bool {
		for _, d := range j.w.DeadLetters() {
			if d.Job == j.ID {
				found = d
				return true
			}
		}
		return false
	})
	if err != nil {
		j.w.t.Fatalf("the job gets no dead letter\n%s", j.Why())
	}
	return found
}

// Retry releases the message of the dead letter, to be tried again. A parked effect is recorded
// as not done.
func (d *DeadLetter) Retry() {
	d.w.t.Helper()
	d.act("retry", store.Action{Retry: true, Effect: d.effect, Reason: "it was not done"})
}

// Done says that the parked effect was done, with that result. The handler goes on with it.
func (d *DeadLetter) Done(result any) {
	d.w.t.Helper()
	body, err := canonical.Marshal(result)
	if err != nil {
		d.w.t.Fatalf("done with %T: %v", result, err)
	}
	d.act("done", store.Action{Done: body, Effect: d.effect, Reason: "it was done"})
}

// Resolve ends the request of the dead letter with an output, in place of its handler.
func (d *DeadLetter) Resolve(output any) {
	d.w.t.Helper()
	body, err := canonical.Marshal(output)
	if err != nil {
		d.w.t.Fatalf("resolve with %T: %v", output, err)
	}
	d.act("resolve", store.Action{Reason: "resolved", Response: &journal.Response{
		Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: body,
	}})
}

// Fail ends the request of the dead letter with an error, code 400 to 599.
func (d *DeadLetter) Fail(code int, message string) {
	d.w.t.Helper()
	d.act("fail", store.Action{Reason: "failed", Response: &journal.Response{
		Kind: journal.ResponseTerminal, Code: code,
		Error: &journal.Failure{Class: "operator", Message: wire.CutText(message)},
	}})
}

// Effect returns the effect in doubt, which Retry and Done decide: the one that was started and
// has no recorded end, or else the one that a verifier does not confirm. The test fails unless
// there is exactly one.
func (d *DeadLetter) Effect() view.Effect {
	d.w.t.Helper()
	job := &Job{ID: d.Job, Key: d.Key, w: d.w}
	var rows []store.EffectRow
	for _, e := range job.effects() {
		if e.Request == d.row {
			rows = append(rows, e.EffectRow)
		}
	}
	asked := store.Action{Done: []byte("null"), Effect: d.effect}
	_, doubted, err := asked.Judge(string(d.Reason), rows)
	if err != nil {
		d.w.t.Fatalf("dead letter %d of job %q: %v", d.ID, d.Key, err)
	}
	all := job.Effects()
	return all[slices.IndexFunc(all, func(f view.Effect) bool { return f.Key == doubted.Key })]
}

// Class returns why the request of the dead letter is parked: wire.ClassParked (an effect of
// unknown outcome), wire.ClassConfirm, wire.ClassNondeterminism, …; "" if it is not parked.
func (d *DeadLetter) Class() string {
	d.w.t.Helper()
	class := ""
	if d.Job.IsZero() {
		return class
	}
	for _, e := range d.w.entries(d.Job) {
		if x := e.Response; x != nil && x.Request == d.row && x.Kind == journal.ResponseParked && x.Error != nil {
			class = x.Error.Class
		}
	}
	return class
}

// About returns a copy of the dead letter whose Retry and Done decide that effect. Use it where
// several effects are in doubt, or a completed one is.
func (d *DeadLetter) About(e view.Effect) *DeadLetter {
	about := *d
	about.effect = e.Key
	return &about
}

func (d *DeadLetter) act(what string, a store.Action) {
	d.w.t.Helper()
	a.ID, a.Who = d.ID, who
	if err := d.w.eng.Committer().Act(context.Background(), a); err != nil {
		d.w.t.Fatalf("%s dead letter %d of job %q (%s): %v", what, d.ID, d.Key, d.Message, err)
	}
}
