package quipu

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
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
var ErrTombstone = errors.New("the job has expired: its journal was removed")

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
	var s effectFilter
	err = rt.store.Audit(ctx, job.ID, func(stored *store.Stored, records iter.Seq2[journal.Record, error]) error {
		if stored.Job.State == journal.JobExpired {
			return ErrTombstone
		}
		s = effectFilter{stored: stored, wanted: meaning(effect), at: map[journal.Digest]int{}, chains: map[journal.GUID]bool{}}
		s.out = Evidence{
			Job: Job{ID: job.ID, Key: stored.Job.Key}, State: stored.Job.State, Head: stored.Job.Head,
			Final: final(stored),
		}
		report, err := stored.Verify(replay.NewFlows(rt.cfg.Build), s.through(records))
		if err == nil && report.Violated() {
			s.out.Violation = report.First.String()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the journal of job %s: %w", nameOf(job), err)
	}
	s.finish()
	return &s.out, nil
}

func nameOf(job Job) string {
	if job.Key == "" {
		return job.ID.String()
	}
	return fmt.Sprintf("%q", job.Key)
}

// final says that the job's journal tells of every effect and that no other can begin. A job that
// resumes another is never final: its effects may stand in that one's journal.
func final(s *store.Stored) bool {
	for _, row := range s.Rows {
		if row.Kind == journal.MessageRequest || row.Kind == journal.MessageAnswer {
			return false
		}
	}
	return s.Job.State.Closed() && s.Job.From == nil
}

// meaning returns the test for the effects that a key or a name stands for.
func meaning(effect string) func(*journal.Effect) bool {
	if key, err := journal.ParseDigest(effect); err == nil {
		return func(f *journal.Effect) bool { return f.Key == key }
	}
	return func(f *journal.Effect) bool {
		bare, _, _ := strings.Cut(f.Name, "[")
		return effect == "" || f.Name == effect || bare == effect || strings.HasPrefix(f.Name, effect+"{") && strings.HasSuffix(effect, "]")
	}
}

// effectFilter picks the entries of the wanted effects out of a job's entries.
type effectFilter struct {
	stored *store.Stored
	wanted func(*journal.Effect) bool
	at     map[journal.Digest]int // place in out.Effects
	chains map[journal.GUID]bool
	spoken []*journal.Entry // operators' entries about wanted effects; they come before the effect chains
	out    Evidence
}

// through yields the records and looks at each as it passes.
func (s *effectFilter) through(records iter.Seq2[journal.Record, error]) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for r, err := range records {
			if err == nil {
				s.look(r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func (s *effectFilter) look(r journal.Record) {
	s.out.Entries++
	if !r.Chain.IsZero() {
		s.chains[r.Chain] = true
	}
	e, err := journal.Decode(r)
	if err != nil {
		return // the verification reports it
	}
	if slices.Contains(e.Marks, journal.MarkClosed) {
		s.out.Closed = time.UnixMicro(e.Time)
	}
	switch {
	case e.Effect == nil || !s.wanted(e.Effect):
	case r.Chain.IsZero():
		s.spoken = append(s.spoken, e)
	default:
		s.take(e)
	}
}

// take adds an entry of an effect's chain.
func (s *effectFilter) take(e *journal.Entry) {
	i, known := s.at[e.Effect.Key]
	if !known {
		i = len(s.out.Effects)
		s.at[e.Effect.Key] = i
		s.out.Effects = append(s.out.Effects, Effect{
			Job: s.out.Job, Key: e.Effect.Key, Name: e.Effect.Name, Class: effects.Class(e.Effect.Class), NotDone: e.Effect.N,
			Request: e.Chain, Activity: e.Activity, Address: e.DAD,
		})
	}
	f := &s.out.Effects[i]
	f.Entries = append(f.Entries, e)
	if f.Activity == "" { // a late entry does not name the instance
		f.Activity, f.Address = e.Activity, e.DAD
	}
}

// finish adds what the tables hold and what operators decided.
func (s *effectFilter) finish() {
	s.out.Chains = len(s.chains)
	for i := range s.stored.Effects {
		row := &s.stored.Effects[i]
		if at, ok := s.at[row.Key]; ok {
			f := &s.out.Effects[at]
			f.Name, f.Class, f.NotDone, f.State = row.Name, effects.Class(row.Class), row.N, EffectState(row.State)
			f.Result, f.Error, f.Position, f.Vouched = row.Result, row.Error, row.Position, row.Vouched
		}
	}
	for _, e := range s.spoken {
		if at, ok := s.at[e.Effect.Key]; ok {
			s.out.Effects[at].Entries = append(s.out.Effects[at].Entries, e)
		}
	}
	slices.SortStableFunc(s.out.Effects, func(a, b Effect) int { return cmp.Compare(a.Entries[0].Time, b.Entries[0].Time) })
}
