package quipu

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// EffectState is how far an effect came.
type EffectState string

// The states of an effect.
const (
	EffectStarted   EffectState = "started"   // its call outside is running, or its outcome is unknown
	EffectCompleted EffectState = "completed" // with a result, or an error that is one
	EffectNotDone   EffectState = "not_done"  // it runs again under the next key (E5)
)

// ClassUndo is the class of a compensation (3.5), which no effect of a handler has.
const ClassUndo effects.Class = collation.ClassUndo

// Effect is an effect of a job, with the journal entries about it.
type Effect struct {
	Job     Job
	Key     journal.Digest
	Name    string
	Class   effects.Class // or ClassUndo
	State   EffectState
	NotDone int          // how often it was recorded as not done before (E5)
	Request journal.GUID // the activity's request
	// Activity and Address name the instance that the effect belongs to.
	Activity, Address string
	Position          string          // of the call in a durable function (E15), or ""
	Result            json.RawMessage // canonical
	Error             *journal.Failure
	Vouched           bool // an operator confirmed the result (3.3)
	// Entries are those of the request's effect chain, in order, then the operators' entries in
	// the main chain that name the effect.
	Entries []*journal.Entry
}

// Evidence is what the journal of a job proves about an effect, read from one snapshot.
type Evidence struct {
	Job    Job
	State  journal.JobState
	Head   journal.Head // of the main chain
	Closed time.Time    // zero while it is open
	// Effects are the effects asked for, in the order of their first entries. An empty list means
	// that the journal has none.
	Effects []Effect
	// Final says that no further effect of the job can begin: the job is closed and its requests,
	// without which no effect begins (J8), are gone. It is never set for a job that resumes
	// another. An empty list of Effects proves that the effect did not happen only if Final is
	// set and Violation is empty.
	Final bool
	// Chains counts the job's effect chains, Entries the entries that were read.
	Chains, Entries int
	// Violation is the first law that the job's journal breaks, as journal-verify finds it; empty
	// if the journal keeps them all.
	Violation string
}

// ErrTombstone says that the job has expired and its journal was removed.
var ErrTombstone = inspect.ErrTombstone

// Effect finds an effect by its key (effects.Key) among all jobs of the space: ErrNotFound. A
// compensation that ran in a job of its own is recorded there and in the job that registered it,
// under one key; Effect returns the one that ran.
func (rt *Runtime) Effect(ctx context.Context, key journal.Digest) (*Effect, error) {
	found, err := rt.store.FindEffect(ctx, key)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b store.JobEffect) int { return cmp.Compare(unknown(&a), unknown(&b)) })
	for i := range found {
		ev, err := rt.Evidence(ctx, Job{ID: found[i].Job}, key.String())
		if err != nil {
			return nil, err
		}
		if len(ev.Effects) > 0 {
			return &ev.Effects[0], nil
		}
	}
	return nil, fmt.Errorf("effect %s: %w: no job of the space has it", key, ErrNotFound)
}

// unknown sorts effects without a recorded outcome last: 1 for those, 0 for the others.
func unknown(f *store.JobEffect) int {
	if f.State == store.EffectStarted {
		return 1
	}
	return 0
}

// Evidence reads and verifies the journal of a job and reports what it holds about an effect.
// effect is a key (64 hexadecimal digits) or a name, such as charge, or charge[order-1] with its
// explicit key; a name stands for all effects that have it. An effect that was recorded as not
// done has one key for each time. Errors: ErrNotFound, ErrTombstone.
func (rt *Runtime) Evidence(ctx context.Context, job Job, effect string) (*Evidence, error) {
	job, err := rt.known(ctx, job)
	if err != nil {
		return nil, err
	}
	found, err := inspect.Effects(ctx, rt.store, job.ID, effect, rt.cfg.Build)
	if err != nil {
		return nil, fmt.Errorf("read the journal of job %.80q: %w", job.name(), err)
	}
	job = Job{ID: job.ID, Key: found.Key}
	out := &Evidence{
		Job: job, State: found.State, Head: found.Head, Final: found.Final, Chains: found.Chains, Entries: found.Entries, Violation: found.Violation,
		Effects: make([]Effect, len(found.Effects)),
	}
	if found.Closed != 0 {
		out.Closed = time.UnixMicro(found.Closed)
	}
	for i := range found.Effects {
		f := &found.Effects[i]
		out.Effects[i] = Effect{
			Job: job, Key: f.Key, Name: f.Name, Class: effects.Class(f.Class), State: EffectState(f.State), NotDone: f.N, Request: f.Request,
			Activity: f.Activity, Address: f.Address, Position: f.Position, Result: f.Result, Error: f.Error, Vouched: f.Vouched, Entries: f.Entries,
		}
	}
	return out, nil
}
