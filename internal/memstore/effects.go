package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// effectID names an effect of a job: its request, and its key.
type effectID struct {
	request journal.GUID
	key     journal.Digest
}

func idOf(f *collation.Effect) effectID { return effectID{f.Request, f.Key} }

// effectsWhere lists effects by request, each request's in the order of their first entries.
func (j *job) effectsWhere(want func(*collation.Effect) bool) []*collation.Effect {
	var all []*collation.Effect
	for _, f := range j.effects {
		if want(f) {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *collation.Effect) int {
		return cmp.Or(compareIDs(a.Request, b.Request), cmp.Compare(a.Seq, b.Seq))
	})
	return all
}

func (s *Store) effectRows(j *job, want func(*collation.Effect) bool) []store.EffectRow {
	found := j.effectsWhere(want)
	out := slices.Grow([]store.EffectRow(nil), len(found))
	for _, f := range found {
		out = append(out, s.effectRow(j, f))
	}
	return out
}

func (s *Store) effectRow(j *job, f *collation.Effect) store.EffectRow {
	r := f.EffectRow
	row := s.row(j.ID, f.Request)
	r.Live = r.State == store.EffectStarted && row != nil && row.Holder == r.Holder && row.Fence == r.Fence
	return r
}

// chain reads the effect chain of a request and its row, if the transaction has locked the job:
// here one lock covers both.
func (c *committer) chain(w *store.Want, l *store.Loaded) {
	k := w.Chain
	if k == (collation.RowKey{}) {
		return
	}
	h := l.Chains[k]
	if h == nil {
		h = &collation.Chain{Request: k.GUID, Now: l.Now, Effects: map[journal.Digest]*collation.Effect{}}
	}
	j := c.s.living(k.Job)
	switch {
	case j != nil && c.s.owner(k.Job) != c.txn:
		return
	case j != nil:
		c.txn.rows[k.GUID] = true
		h.Job, h.Row = j.Job, copyRow(c.s.row(k.Job, k.GUID))
		if n := len(j.chains[k.GUID]); n > 0 {
			h.Head = journal.Head{Seq: int64(n), Hash: j.chains[k.GUID][n-1].Hash}
		}
		for _, key := range w.Effects {
			if f := j.effects[effectID{k.GUID, key}]; f != nil {
				read := *f
				read.EffectRow = c.s.effectRow(j, f)
				h.Effects[key] = &read
			}
			if p := c.s.pastEffect(j, h.Row, key); w.Past && p != nil {
				have(&h.Past)[key] = p
			}
		}
	}
	l.Chains[k] = h
}

// moveChain writes a plan's effects of a request (J8).
func (s *Store) moveChain(u *undo, p *collation.Plan) error {
	w := p.Chain
	if w == nil {
		return nil
	}
	j := s.jobs[p.Job]
	f := w.Effect
	old := j.effects[idOf(&f)]
	switch {
	case w.Begins() && old != nil:
		return lost("effect %s was begun", f.Key)
	case !w.Begins() && old == nil:
		return lost("effect %s is not there", f.Key)
	case w.Completed && old.State != store.EffectCompleted:
		return lost("effect %s has no result", f.Key)
	case !w.Completed && old != nil && old.State != store.EffectStarted:
		return lost("effect %s has its outcome", f.Key)
	case old != nil:
		f.Seq = old.Seq
	}
	if row := s.row(p.Job, w.Request); w.Begins() && row != nil {
		put(u, j.topics, w.Request, row.Topic)
	}
	put(u, j.effects, idOf(&f), &f)
	if w.Row != nil {
		row := clone(s.row(p.Job, w.Request))
		switch {
		case row == nil:
			return lost("row %s is gone", w.Request)
		case row.Rev != w.Row.Rev-1:
			return lost("row %s has rev %d, the plan gives it %d", w.Request, row.Rev, w.Row.Rev)
		case j.State != w.State:
			return lost("job %s is %s, not %s", p.Job, j.State, w.State)
		}
		row.SetEffects(w.Row)
		s.putRow(u, row)
	}
	if w.Resolve {
		s.answerLetters(u, p.Job, w.Request)
	}
	if w.Entry == nil {
		return nil
	}
	return j.append(u, w.Request, w.Body, w.Hash)
}

// outcome returns an effect that has its outcome, or nil.
func (s *Store) outcome(of collation.RowKey, key journal.Digest) *store.EffectRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, at := s.living(of.Job), effectID{of.GUID, key}
	if j == nil || j.effects[at] == nil || j.effects[at].State == store.EffectStarted {
		return nil
	}
	row := s.effectRow(j, j.effects[at])
	return &row
}

// Effects implements store.Requests.
func (s *Store) Effects(_ context.Context, id journal.JobID, request journal.GUID) ([]store.EffectRow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.living(id)
	if j == nil {
		return nil, nil
	}
	return s.effectRows(j, func(f *collation.Effect) bool { return f.Request == request }), nil
}

// JobEffects implements store.Client.
func (s *Store) JobEffects(_ context.Context, id journal.JobID) ([]store.JobEffect, error) {
	return s.placed(func(j *job, _ *collation.Effect) bool { return j.ID == id }), nil
}

// FindEffect implements store.Client.
func (s *Store) FindEffect(_ context.Context, key journal.Digest) ([]store.JobEffect, error) {
	return s.placed(func(_ *job, f *collation.Effect) bool { return f.Key == key }), nil
}

// placed lists effects with their places, by job and in the order of their first entries, which name
// the places.
func (s *Store) placed(want func(*job, *collation.Effect) bool) (all []store.JobEffect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range sortedIDs(s.jobs) {
		j := s.living(id)
		if j == nil {
			continue
		}
		found := j.effectsWhere(func(f *collation.Effect) bool { return want(j, f) })
		first := func(f *collation.Effect) *journal.Entry { return j.entryOf(f.Request, f.Seq) }
		slices.SortStableFunc(found, func(a, b *collation.Effect) int {
			return cmp.Compare(first(a).Time, first(b).Time)
		})
		for _, f := range found {
			all = append(all, store.JobEffect{
				EffectRow: s.effectRow(j, f), Job: j.ID, Request: f.Request, Activity: first(f).Activity,
				DAD: first(f).DAD,
			})
		}
	}
	return all
}
