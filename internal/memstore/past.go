package memstore

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// root returns the first generation that the job resumes, or the job itself if there is none.
func (j *job) root() journal.JobID {
	id, _ := j.Root()
	return id
}

// takes is a job from which another takes over what its entries up to cut recorded.
type takes struct {
	*job
	cut    int64
	forked bool // the cut is that of a fork
}

// takes lists the generations that the job resumes, the latest first, and then the job from one of
// whose entries it, or the fork that it resumes, goes on.
func (s *Store) takes(j *job) (all []takes) {
	for _, a := range s.past(j) {
		all = append(all, takes{a, math.MaxInt64, false})
	}
	if j.From != nil && j.From.Fork != nil {
		if a := s.living(j.From.Fork.Job); a != nil {
			all = append(all, takes{a, j.From.Fork.At, true})
		}
	}
	return all
}

// past lists the generations that the job resumes, the latest first.
func (s *Store) past(j *job) (all []*job) {
	if j.From == nil || j.From.Forks() {
		return nil
	}
	for _, a := range s.jobs {
		if a.Key == j.Key && a.Generation < j.Generation && a.root() == j.root() && a.State != journal.JobExpired {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *job) int { return cmp.Compare(b.Generation, a.Generation) })
	return all
}

// morePast reads what is needed of the generations that the job resumes.
func (c *committer) morePast(j *job, st *collation.State, n *collation.Need) error {
	s := c.s
	past := s.takes(j)
	for _, key := range n.Past {
		var all []collation.Past
		for _, a := range past {
			p := collation.Past{Generation: a.Generation, Forked: a.forked, From: a.From}
			if i := a.instances[key]; i != nil && i.ResultSeq > 0 && i.ResultSeq <= a.cut {
				var err error
				if p.Result, err = a.result(key); err != nil {
					return err
				}
				p.Seq = i.ResultSeq
			}
			all = append(all, p)
		}
		have(&st.Past)[key] = all
	}
	for _, key := range n.Pauses {
		have(&st.PastPauses)[key] = s.pastPause(past, key)
	}
	for _, id := range n.Ends {
		have(&st.Ends)[id] = s.endOf(id)
	}
	return nil
}

// have returns the map, and makes it if need be.
func have[K comparable, V any](m *map[K]V) map[K]V {
	if *m == nil {
		*m = map[K]V{}
	}
	return *m
}

// pastPause returns the latest generation's first record of a pause. It is nil if there is none, or if
// the compensations of its function have run.
func (s *Store) pastPause(past []takes, key collation.PauseKey) *collation.PastPause {
	for _, a := range past {
		for _, w := range slices.SortedFunc(maps.Values(a.resolved), bySeq) {
			e := a.entry(w.Seq)
			if w.PauseRef != key.PauseRef || w.Seq > a.cut || e.Activity != key.Activity || e.DAD != string(key.DAD) ||
				!a.asks(w.Request, key) {
				continue
			}
			if undone, _ := s.undoneOf(a.job, w.Request); undone {
				return nil
			}
			return &collation.PastPause{
				Generation: a.Generation, Forked: a.forked, Seq: w.Seq, Response: clone(e.Response),
			}
		}
	}
	return nil
}

func bySeq(a, b *collation.ResolvedWait) int { return cmp.Compare(a.Seq, b.Seq) }

// asks says whether the request is that of the element.
func (j *job) asks(request journal.GUID, key collation.PauseKey) bool {
	i := j.instances[key.InstanceKey]
	return i == nil || i.Count == 0 || request == collation.RequestGUID(i.Leg1, key.Element)
}

// undoneOf says whether compensations of a request have run or will run, and whether the job that
// runs them is still open.
func (s *Store) undoneOf(j *job, request journal.GUID) (undone, undoing bool) {
	for _, f := range j.effects {
		undone = undone || f.Request == request && f.Class == store.ClassUndo && f.State == store.EffectCompleted
	}
	id := collation.UndoID(request)
	k := s.jobs[id]
	undoing = k != nil && !k.State.Closed() || s.ordered(id) != nil
	return undone || k != nil || undoing, undoing
}

// pastEffect returns an effect as the latest generation that has it left it: one of the topic of the request that asks
// for it (S8). row is that of the request; nil: gone, so it begins none.
func (s *Store) pastEffect(j *job, row *collation.Row, key journal.Digest) *collation.PastEffect {
	if row == nil {
		return nil
	}
	for _, a := range s.past(j) {
		all := a.effectsWhere(func(f *collation.Effect) bool {
			return f.Key == key && a.topics[f.Request] == row.Topic
		})
		if len(all) > 0 {
			f := all[0]
			p := &collation.PastEffect{Effect: *f, Generation: a.Generation}
			p.EffectRow = s.effectRow(a, f)
			p.Undone, p.Undoing = s.undoneOf(a, f.Request)
			return p
		}
	}
	return nil
}

// endOf returns how the last generation of a child ended, nil if it has not completed.
func (s *Store) endOf(child journal.JobID) *collation.End {
	c := s.living(child)
	if c == nil {
		return nil
	}
	last := s.living(s.keys[c.Key])
	if last == nil || last.root() != c.root() || last.State != journal.JobCompleted || last.tasksSeq == 0 {
		return nil
	}
	return &collation.End{
		Job: last.ID, Generation: last.Generation, Seq: last.tasksSeq, Output: last.entry(last.tasksSeq).Close.Output,
	}
}
