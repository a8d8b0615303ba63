package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/internal/look"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// showEffect shows an effect of one job, or, without a job, of the job that has it.
func (a *app) showEffect(ctx context.Context, rt *quipu.Runtime, effect string, jobs []string) error {
	if len(jobs) == 0 {
		key, err := journal.ParseDigest(effect)
		if err != nil {
			return cli.Exitf(cli.CodeUsage, "--effect %.80q is no key of 64 hexadecimal digits: with a name, give the job, too", effect)
		}
		f, err := rt.Effect(ctx, key)
		if errors.Is(err, quipu.ErrNotFound) {
			return cli.Exitf(codeNotFound, "no job of this space has an effect with the key %s; of jobs that have expired nothing is known", key)
		}
		if err != nil {
			return err
		}
		return a.effects([]quipu.Effect{*f})
	}
	job, err := look.Find(ctx, rt, jobs[0])
	if err != nil {
		return err
	}
	ev, err := rt.Evidence(ctx, job, effect)
	if errors.Is(err, quipu.ErrTombstone) {
		return cli.Exit(codeNotFound, err)
	}
	if err != nil {
		return err
	}
	if len(ev.Effects) > 0 {
		return a.effects(ev.Effects)
	}
	has, err := below.Of(rt).JobEffects(ctx, ev.Job.ID)
	if err != nil {
		return err
	}
	return a.absence(effect, ev, names(has))
}

// names returns the names of effects, each once, sorted.
func names(all []store.JobEffect) []string {
	out := make([]string, 0, len(all))
	for i := range all {
		out = append(out, all[i].Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// effects prints effects. The exit code is that of the least certain one.
func (a *app) effects(all []quipu.Effect) error {
	code := worst(cli.CodeOK)
	for i := range all {
		f := &all[i]
		if f.State != quipu.EffectCompleted {
			code.add(codeUndone)
		}
		if a.json() {
			if err := a.object(effectOf(f)); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(a.streams.Out)
		}
		if err := effectText(a.streams.Out, f); err != nil {
			return err
		}
	}
	return code.err()
}

// effectView is an effect in JSON.
type effectView struct {
	Effect   string          `json:"effect"` // its key
	Name     string          `json:"name"`
	State    string          `json:"state"` // started, completed, not_done
	Class    string          `json:"class"`
	N        int             `json:"n"` // how often it was recorded as not done before
	Job      string          `json:"job"`
	JobKey   string          `json:"job_key"`
	Request  string          `json:"request"`
	Activity string          `json:"activity"`
	DAD      string          `json:"dad"`
	Position string          `json:"position,omitempty"`
	Vouched  bool            `json:"vouched,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *failure        `json:"error,omitempty"`
	Entries  []effectEntry   `json:"entries"`
}

// effectEntry is a journal entry about an effect.
type effectEntry struct {
	Kind   string     `json:"kind"`
	Seq    int64      `json:"seq"` // in the chain of the request; for an operator's entry in the main chain
	Time   *time.Time `json:"time"`
	Turn   int        `json:"turn,omitempty"`
	Fence  int64      `json:"fence,omitempty"`
	Late   bool       `json:"late,omitempty"`
	By     string     `json:"by,omitempty"` // the worker, or the operator
	Action string     `json:"action,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Finding is who found the outcome, where the call did not tell it.
	Finding *finding `json:"finding,omitempty"`
}

// finding is what a verifier said of an effect.
type finding struct {
	Verifier string     `json:"verifier"`
	Error    string     `json:"error,omitempty"` // of the call; none if its run was cut off
	Asked    *time.Time `json:"asked"`
	Took     float64    `json:"took_s"`
	Note     string     `json:"note,omitempty"`
}

func findingOf(f *journal.Finding) *finding {
	if f == nil {
		return nil
	}
	return &finding{
		f.Verifier, f.Error, stamp(collation.Micros(f.Asked)), (time.Duration(f.Took) * time.Microsecond).Seconds(),
		f.Note,
	}
}

func effectOf(f *quipu.Effect) effectView {
	v := effectView{
		Effect: f.Key.String(), Name: f.Name, State: string(f.State), Class: string(f.Class), N: f.NotDone,
		Job: f.Job.ID.String(), JobKey: f.Job.Key,
		Request: f.Request.String(), Activity: f.Activity, DAD: f.Address, Position: f.Position, Vouched: f.Vouched,
		Result: raw(f.Result), Error: failureOf(f.Error), Entries: []effectEntry{},
	}
	for _, e := range f.Entries {
		v.Entries = append(v.Entries, effectEntryOf(e))
	}
	return v
}

func effectEntryOf(e *journal.Entry) effectEntry {
	v := effectEntry{Kind: string(e.Kind), Seq: e.Seq, Time: stamp(collation.Micros(e.Time)), By: e.Writer}
	if f := e.Effect; f != nil {
		v.Turn, v.Fence, v.Late, v.Finding = f.Turn, f.Fence, f.Late, findingOf(f.Finding)
	}
	if o := e.Operator; o != nil {
		v.By, v.Action, v.Reason = o.Who, o.Action, o.Reason
	}
	return v
}

func effectText(w io.Writer, f *quipu.Effect) error {
	fmt.Fprintf(w, "effect   %s (%s)\n", plain(f.Name), f.Key)
	fmt.Fprintf(w, "job      %s (%s)\n", plain(f.Job.Key), f.Job.ID)
	fmt.Fprintf(w, "request  %s, of %s\n", f.Request, plain(place(f.Activity, f.Address)))
	if f.Position != "" {
		fmt.Fprintf(w, "position %s\n", plain(f.Position))
	}
	fmt.Fprintf(w, "class    %s\n", f.Class)
	fmt.Fprintf(w, "state    %s\n", outcome(f))
	if f.Error != nil {
		fmt.Fprintf(w, "error    %s\n", plain(failureText(f.Error)))
	} else if len(f.Result) > 0 {
		fmt.Fprintf(w, "result   %s\n", pretty(f.Result, "         "))
	}
	fmt.Fprintln(w)
	t := newTable(w, "AT", "ENTRY", "", "TURN", "BY", "").bounded()
	for _, e := range f.Entries {
		x := effectEntryOf(e)
		note := ""
		if x.Late {
			note = "late"
		}
		if x.Action != "" {
			note = x.Action + ": " + x.Reason
		}
		if x.Finding != nil {
			note = history.Found(e.Effect.Finding)
		}
		t.row(local(x.Time), x.Seq, x.Kind, x.Turn, x.By, note)
	}
	return t.flush()
}

// effectTable lists the effects of a job.
func effectTable(w io.Writer, v *shown, digits bool) *table {
	t := newTable(w, "EFFECT", "CLASS", "ACTIVITY", address, "STATE", "KEY").bounded().addressed(digits)
	for i := range v.effects {
		f := &v.effects[i]
		activity := f.Activity
		if element, listed := v.elements[f.Request]; listed {
			activity = fmt.Sprintf("%s[%d]", activity, element)
		}
		t.row(f.Name, f.Class, activity, f.DAD, briefly(&f.EffectRow), f.Key)
	}
	return t
}

// briefly returns the state of an effect for a table.
func briefly(f *store.EffectRow) string {
	switch {
	case f.State == store.EffectNotDone:
		return "not done"
	case f.State == store.EffectStarted && f.Class == store.ClassUndo:
		return "registered"
	case f.State == store.EffectCompleted && f.Error != nil:
		return "completed: error"
	}
	return string(f.State)
}

// outcome describes the state of an effect in a sentence.
func outcome(f *quipu.Effect) string {
	switch {
	case f.State == quipu.EffectNotDone:
		return "not done: it definitely did not happen under this key, and may run again under the next"
	case f.State == quipu.EffectStarted && f.Class == quipu.ClassUndo:
		return "registered, and has not run here: it runs if the function fails; for a job that others end, in a job of its own, which is found by the key alone"
	case f.State == quipu.EffectStarted:
		return "started: its call outside is under way, or its outcome is unknown"
	case f.Error != nil:
		return "completed with an error, which is its result"
	case f.Vouched:
		return "completed, and confirmed by an operator"
	}
	return "completed"
}

// absenceView is an effect that a job does not have, in JSON.
type absenceView struct {
	Effect   string     `json:"effect"` // as given on the command line
	State    string     `json:"state"`  // absent
	Proved   bool       `json:"proved"` // it did not happen and cannot happen any more
	Job      string     `json:"job"`
	JobKey   string     `json:"job_key"`
	JobState string     `json:"job_state"`
	Closed   *time.Time `json:"closed,omitempty"`
	Entries  int        `json:"entries"`
	Chains   int        `json:"chains"`
	Head     string     `json:"head"`
	Violated string     `json:"violated,omitempty"`
	Has      []string   `json:"has"` // the names of the effects of the job
}

// absence prints what it means that a job's journal has no such effect.
func (a *app) absence(effect string, ev *quipu.Evidence, has []string) error {
	v := absenceView{
		Effect: effect, State: "absent", Proved: ev.Final && ev.Violation == "", Job: ev.Job.ID.String(), JobKey: ev.Job.Key,
		JobState: string(ev.State), Closed: timeOf(ev.Closed), Violated: ev.Violation, Entries: ev.Entries,
		Chains: ev.Chains, Head: ev.Head.Hash.String(), Has: has,
	}
	if a.json() {
		if err := a.object(v); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(a.streams.Out, plain(proof(effect, ev)))
		fmt.Fprintln(a.streams.Out, plain(others(has)))
	}
	switch {
	case ev.Violation != "":
		return cli.Exit(cli.CodeFailed, cli.ErrReported)
	case v.Proved:
		return cli.Exit(codeNotFound, cli.ErrReported)
	}
	return cli.Exit(codeUndone, cli.ErrReported)
}

// proof returns one paragraph: the proof that an effect did not happen, or why there is none.
func proof(effect string, ev *quipu.Evidence) string {
	read := fmt.Sprintf("%s and %s of effects", entries(int64(ev.Entries)), counted(ev.Chains, "chain"))
	switch {
	case ev.Violation != "":
		return fmt.Sprintf("Nothing is proved of effect %s: the journal of job %q breaks a law (%s). No entry of it that can be read starts or completes "+
			"the effect; `journal-verify --job %s` says more.", effect, ev.Job.Key, ev.Violation, ev.Job.ID)
	case !ev.Final:
		return fmt.Sprintf("Effect %s has not happened in job %q so far: %s were read, up to head %s, and none starts or completes it. "+
			"The job is %s, so it can still happen.", effect, ev.Job.Key, read, ev.Head.Hash, standingOf(ev))
	}
	return fmt.Sprintf("Effect %s did not happen in job %q. The job is %s since %s; its journal was verified: %s, every one linked by its hash to the one "+
		"before, complete up to the stored head %s, and the tables agree. None of them starts or completes the effect. It cannot happen any more either: "+
		"an effect begins and ends under the row of its request, and this job has no such row left (J8). (As for every journal: that entries, hashes and "+
		"tables were not all written anew together is not proved by them.)",
		effect, ev.Job.Key, ev.State, ev.Closed.Local().Format("2006-01-02 15:04:05.000"), read, ev.Head.Hash)
}

// others names the effects that the job has, in case the name was mistyped.
func others(has []string) string {
	if len(has) == 0 {
		return "The job has no effects."
	}
	const most = 20 // most names that are printed
	more := ""
	if len(has) > most {
		has, more = has[:most], fmt.Sprintf(" and %d more, see `quipu show`", len(has)-most)
	}
	return "This is about exactly the name or key that was given. The job has: " + strings.Join(has, ", ") + more + "."
}

func standingOf(ev *quipu.Evidence) string {
	if ev.State.Closed() {
		return "closed, and a request of it is not done yet"
	}
	return string(ev.State)
}
