package inspect

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/view"
)

// Evidence is what the journal of a job proves about effects, read from one snapshot.
type Evidence struct {
	Key     string // of the job
	State   journal.JobState
	Head    journal.Head  // of the main chain
	Closed  int64         // when, microseconds; 0 while it is open
	Effects []view.Effect // in the order of their first entries
	// Final says that no further effect of the job can begin, and that its journal has all.
	Final           bool
	Chains, Entries int    // effect chains of the job; entries that were read
	Violation       string // the first law that the journal breaks; empty for none
}

// Effects reads and verifies the journal of a job and reports what it holds about an effect: its key,
// its name with or without the explicit key, or "" for all. build is that of the process. Errors:
// store.ErrNotFound, ErrTombstone.
func Effects(ctx context.Context, r store.Reader, job journal.JobID, effect, build string) (*Evidence, error) {
	var s effectFilter
	err := r.Audit(ctx, job, func(stored *store.Stored, records iter.Seq2[journal.Record, error]) error {
		if stored.Job.State == journal.JobExpired {
			return ErrTombstone
		}
		s = effectFilter{
			stored: stored, wanted: meaning(effect), told: newEffects(), chains: map[journal.GUID]bool{},
		}
		s.out = Evidence{Key: stored.Job.Key, State: stored.Job.State, Head: stored.Job.Head, Final: final(stored)}
		report, err := stored.Verify(replay.NewFlows(build), s.through(records))
		if err == nil && report.Violated() {
			s.out.Violation = report.First.String()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.finish()
	return &s.out, nil
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
		return effect == "" || f.Name == effect || bare == effect ||
			strings.HasPrefix(f.Name, effect+"{") && strings.HasSuffix(effect, "]")
	}
}

// effectFilter picks the entries of the wanted effects out of a job's entries.
type effectFilter struct {
	stored *store.Stored
	wanted func(*journal.Effect) bool
	told   *effects
	chains map[journal.GUID]bool
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
		s.out.Closed = e.Time
	}
	if e.Effect != nil && s.wanted(e.Effect) {
		s.told.add(e, e.Writer)
	}
}

// finish adds what the tables hold.
func (s *effectFilter) finish() {
	s.out.Chains, s.out.Effects = len(s.chains), s.told.all()
	for i := range s.stored.Effects {
		row := &s.stored.Effects[i]
		if at, ok := s.told.at[row.Key]; ok {
			x := &s.out.Effects[at]
			entries := x.Entries
			*x = effectOf(&store.JobEffect{EffectRow: *row, Request: x.Request, Activity: x.Activity, DAD: x.Address})
			x.Entries = entries
		}
	}
	for i := range s.out.Effects {
		x := &s.out.Effects[i]
		x.Job, x.JobKey = s.stored.Job.ID, s.stored.Job.Key
	}
	slices.SortStableFunc(s.out.Effects, func(a, b view.Effect) int {
		return a.Entries[0].Time.Compare(b.Entries[0].Time)
	})
}
