package postgres

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// past is what is asked of the generations that jobs resume.
type past struct {
	results []pastResult
	pauses  []pastPause
	ends    []pastEnd
}

type pastResult struct {
	place
	fork journal.Fork // zero: none
}

type pastPause struct {
	job  journal.JobID
	key  collation.PauseKey
	fork journal.Fork // zero: none
}

// cutOf is the job that a fork, or what resumes one, goes on from, and up to which entry.
func cutOf(st *collation.State) (fork journal.Fork) {
	if from := st.Job.From; from != nil && from.Fork != nil {
		fork = *from.Fork
	}
	return fork
}

type pastEnd struct{ asks, child journal.JobID }

// ask adds what the state has not been asked for yet.
func (p *past) ask(job journal.JobID, st *collation.State, need *collation.Need) {
	for _, k := range need.Past {
		if first(&st.Past, k) {
			p.results = append(p.results, pastResult{place{job, k}, cutOf(st)})
		}
	}
	for _, k := range need.Pauses {
		if first(&st.PastPauses, k) {
			p.pauses = append(p.pauses, pastPause{job, k, cutOf(st)})
		}
	}
	for _, id := range need.Ends {
		if first(&st.Ends, id) {
			p.ends = append(p.ends, pastEnd{job, id})
		}
	}
}

// first adds a key as a member, and says whether it was not asked for before.
func first[K comparable, V any](m *map[K]V, k K) bool {
	if *m == nil {
		*m = make(map[K]V, 1)
	}
	if _, asked := (*m)[k]; asked {
		return false
	}
	var none V
	(*m)[k] = none
	return true
}

// readsPast returns the statements for p.
func (c *committer) readsPast(p *past) (steps []step) {
	if len(p.results) > 0 {
		steps = append(steps, step{"load_past", p.resultPlaces(), func(v row) error {
			at := p.results[v.int(0)-1]
			from, err := readFrom(v, 3)
			if err != nil {
				return err
			}
			x := collation.Past{Generation: v.int(2), Forked: v.bool(6), From: from}
			if x.Result, err = c.readResult(place{v.job(1), at.key}, v, 5); x.Result != nil {
				x.Seq = v.int(4)
			}
			st := c.states[at.job]
			st.Past[at.key] = append(st.Past[at.key], x)
			return err
		}})
	}
	if len(p.pauses) > 0 {
		steps = append(steps, step{"load_past_pauses", p.pausePlaces(), func(v row) error {
			at := p.pauses[v.int(0)-1]
			return c.readPastPause(at, v)
		}})
	}
	if len(p.ends) > 0 {
		children := uuids(len(p.ends))
		for _, x := range p.ends {
			children.uuid(x.child)
		}
		steps = append(steps, step{"load_ends", [][]byte{children.value()}, func(v row) error {
			at := p.ends[v.int(0)-1]
			e, err := c.s.sealed(v.job(4), v.bytes(3))
			if err == nil && e.Close != nil {
				c.states[at.asks].Ends[at.child] = &collation.End{Job: v.job(4), Generation: v.int(1), Seq: v.int(2), Output: e.Close.Output}
			}
			return err
		}})
	}
	return steps
}

func (p *past) resultPlaces() [][]byte {
	n := len(p.results)
	all, forked, cut := make([]place, n), uuids(n), ints(n)
	for i := range p.results {
		x := &p.results[i]
		all[i] = x.place
		forked.someUUID(x.fork.Job)
		cut.int(x.fork.At)
	}
	return append(places(all), forked.value(), cut.value())
}

func (p *past) pausePlaces() [][]byte {
	n := len(p.pauses)
	job, kind, name, position, activity, dad := uuids(n), texts(n), texts(n), texts(n), texts(n), uuids(n)
	forked, cut := uuids(n), ints(n)
	for i := range p.pauses {
		x := &p.pauses[i]
		job.uuid(x.job)
		kind.text(string(x.key.Kind))
		name.text(x.key.Name)
		position.text(x.key.Position)
		activity.text(x.key.Activity)
		dad.uuid(x.key.DAD.Key())
		forked.someUUID(x.fork.Job)
		cut.int(x.fork.At)
	}
	return [][]byte{
		job.value(), kind.value(), name.value(), position.value(), activity.value(), dad.value(), forked.value(), cut.value(),
	}
}

// readPastPause takes the record of the latest generation, if it is of this instance and element.
// It takes nothing if compensations of the function have run.
func (c *committer) readPastPause(at pastPause, v row) error {
	st := c.states[at.job]
	e, err := c.s.sealed(v.job(7), v.bytes(3))
	switch {
	case err != nil:
		return err
	case st.PastPauses[at.key] != nil, e.Activity != at.key.Activity, e.DAD != string(at.key.DAD),
		!v.null(5) && collation.RequestGUID(v.guid(5), at.key.Element) != v.guid(4), v.bool(6):
		return nil
	}
	st.PastPauses[at.key] = &collation.PastPause{Generation: v.int(1), Forked: v.bool(8), Seq: v.int(2), Response: e.Response}
	return nil
}

// readPastEffects reads the state of the wanted effects in earlier generations.
func (w *wanted) readPastEffects(l *store.Loaded) []step {
	if len(w.pastKeys) == 0 {
		return nil
	}
	job, key := uuids(len(w.pastKeys)), byteas(len(w.pastKeys))
	for i := range w.pastKeys {
		job.uuid(w.pastKeys[i].chain.job)
		key.bytes(w.pastKeys[i].key[:])
	}
	return []step{{"effects_past", [][]byte{job.value(), key.value()}, func(v row) error {
		f, err := readEffect(v)
		if err != nil {
			return err
		}
		k := w.pastKeys[v.int(effectWidth)-1].chain
		h := l.Chains[collation.RowKey{Job: k.job, GUID: k.guid}]
		if h == nil || h.Past[f.Key] != nil { // the latest generation comes first
			return nil
		}
		if h.Past == nil {
			h.Past = make(map[journal.Digest]*collation.PastEffect, 1)
		}
		h.Past[f.Key] = &collation.PastEffect{
			Effect: collation.Effect{
				EffectRow: f, Request: v.guid(effectWidth + 1), Seq: v.int(effectWidth + 2), Until: collation.Micros(v.int(effectWidth + 3)),
			},
			Generation: v.int(effectWidth + 4), Undone: v.bool(effectWidth + 5), Undoing: v.bool(effectWidth + 6),
		}
		return nil
	}}}
}

// queueNexts records in closed jobs which jobs resume them.
func queueNexts(b *batch, plans []*collation.Plan) {
	job, next := uuids(len(plans)), uuids(len(plans))
	for _, p := range plans {
		job.uuid(p.Job)
		next.uuid(p.Next)
	}
	b.queue("write_jobs_next", job.value(), next.value())
}
