package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
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
		return a.effects([]view.Effect{*f})
	}
	job, err := database{rt}.Find(ctx, jobs[0])
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
	return a.absent(effect, ev, names(has))
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
func (a *app) effects(all []view.Effect) error {
	code := worst(cli.CodeOK)
	for i := range all {
		f := &all[i]
		if f.State != view.EffectCompleted {
			code.add(codeUndone)
		}
		if a.json() {
			if err := a.object(f); err != nil {
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

func effectText(w io.Writer, f *view.Effect) error {
	fmt.Fprintf(w, "effect   %s (%s)\n", plain(f.Name), f.Key)
	fmt.Fprintf(w, "job      %s (%s)\n", plain(f.JobKey), f.Job)
	fmt.Fprintf(w, "request  %s, of %s\n", f.Request, plain(place(f.Activity, f.Address)))
	if f.Position != "" {
		fmt.Fprintf(w, "position %s\n", plain(f.Position))
	}
	fmt.Fprintf(w, "class    %s\n", f.Class)
	fmt.Fprintf(w, "state    %s\n", outcome(f))
	if f.Error != nil {
		fmt.Fprintf(w, "error    %s\n", plain(failureText(f.Error)))
	} else if f.Result != nil {
		fmt.Fprintf(w, "result   %s\n", pretty(f.Result.JSON, "         "))
	}
	fmt.Fprintln(w)
	t := newTable(w, "AT", "ENTRY", "", "TURN", "BY", "").bounded()
	for i := range f.Entries {
		e := &f.Entries[i]
		note := ""
		if e.Late {
			note = "late"
		}
		if e.Action != "" {
			note = e.Action + ": " + e.Reason
		}
		if e.Finding != nil {
			note = e.Finding.Text
		}
		t.row(local(e.Time), e.Entry, e.Kind, e.Turn, e.By, note)
	}
	return t.flush()
}

// effectTable lists the effects of a job.
func effectTable(w io.Writer, j *view.Job, digits bool) *table {
	t := newTable(w, "EFFECT", "CLASS", "ACTIVITY", address, "STATE", "KEY").bounded().addressed(digits)
	for i := range j.Effects {
		f := &j.Effects[i]
		t.row(f.Name, f.Class, listed(f.Activity, f.Element), f.Address, briefly(f), f.Key)
	}
	return t
}

// briefly returns the state of an effect for a table.
func briefly(f *view.Effect) string {
	switch f.State {
	case view.EffectNotDone:
		return "not done"
	case view.EffectStarted:
		if f.Class == string(quipu.ClassUndo) {
			return "registered"
		}
	case view.EffectCompleted:
		if f.Error != nil {
			return "completed: error"
		}
	}
	return string(f.State)
}

// outcome describes the state of an effect in a sentence.
func outcome(f *view.Effect) string {
	switch {
	case f.State == view.EffectNotDone:
		return "not done: it definitely did not happen under this key, and may run again under the next"
	case f.State == view.EffectStarted && f.Class == string(quipu.ClassUndo):
		return "registered, and has not run here: it runs if the function fails; for a job that others end, in a job of its own, which is found by the key alone"
	case f.State == view.EffectStarted:
		return "started: its call outside is under way, or its outcome is unknown"
	case f.Error != nil:
		return "completed with an error, which is its result"
	case f.Vouched:
		return "completed, and confirmed by an operator"
	}
	return "completed"
}

// absence is an effect that a job does not have, as it is printed in JSON.
type absence struct {
	Effect   string           `json:"effect"` // as given on the command line
	State    string           `json:"state"`  // absent
	Proved   bool             `json:"proved"` // it did not happen and cannot happen any more
	Job      journal.JobID    `json:"job"`
	JobKey   string           `json:"job_key"`
	JobState journal.JobState `json:"job_state"`
	Closed   time.Time        `json:"closed,omitzero"`
	Entries  int              `json:"entries"`
	Chains   int              `json:"chains"`
	Head     journal.Digest   `json:"head"`
	Violated string           `json:"violated,omitempty"`
	Has      []string         `json:"has"` // the names of the effects of the job
}

// absent prints what it means that a job's journal has no such effect.
func (a *app) absent(effect string, ev *quipu.Evidence, has []string) error {
	v := absence{
		Effect: effect, State: "absent", Proved: ev.Final && ev.Violation == "", Job: ev.Job.ID, JobKey: ev.Job.Key,
		JobState: ev.State, Closed: ev.Closed.UTC(), Violated: ev.Violation, Entries: ev.Entries, Chains: ev.Chains,
		Head: ev.Head.Hash, Has: has,
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
		effect, ev.Job.Key, ev.State, local(ev.Closed), read, ev.Head.Hash)
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
