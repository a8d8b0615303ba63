package postgres

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// past is what is asked of the generations that jobs resume.
type past struct {
	results []pastResult
	pauses  []*pastPause
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
	read bool         // its latest record was found
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
	cut := cutOf(st)
	want(&st.Past, &p.results, need.Past, func(k collation.InstanceKey) pastResult {
		return pastResult{place{job, k}, cut}
	})
	want(&st.PastPauses, &p.pauses, need.Pauses, func(k collation.PauseKey) *pastPause {
		return &pastPause{job: job, key: k, fork: cut}
	})
	want(&st.Ends, &p.ends, need.Ends, func(id journal.JobID) pastEnd { return pastEnd{job, id} })
}

// readsPast returns the statements for p.
func (c *committer) readsPast(p *past) []step {
	return slices.Concat(
		asked("load_past", p.results, putPast, func(at pastResult, v row) error {
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
		}),
		asked("load_past_pauses", p.pauses, putPastPause, c.readPastPause),
		asked("load_ends", p.ends, func(c *columns, x pastEnd) { c.uuid(x.child) }, func(at pastEnd, v row) error {
			e, err := c.s.sealed(v.job(4), v.bytes(3))
			if err == nil && e.Close != nil {
				c.states[at.asks].Ends[at.child] = &collation.End{
					Job: v.job(4), Generation: v.int(1), Seq: v.int(2), Output: e.Close.Output,
				}
			}
			return err
		}),
	)
}

func putPast(c *columns, x pastResult) {
	putPlace(c, x.place)
	putFork(c, x.fork)
}

func putFork(c *columns, f journal.Fork) { c.someUUID(f.Job); c.int(f.At) }

func putPastPause(c *columns, x *pastPause) {
	c.uuid(x.job)
	c.text(string(x.key.Kind))
	c.text(x.key.Name)
	c.text(x.key.Position)
	c.text(x.key.Activity)
	c.uuid(x.key.DAD.Key())
	putFork(c, x.fork)
}

// readPastPause takes the record of the latest generation that has one of this instance and element. It takes nothing
// if compensations of that function have run, even if an earlier generation has a record, too.
func (c *committer) readPastPause(at *pastPause, v row) error {
	e, err := c.s.sealed(v.job(7), v.bytes(3))
	switch {
	case err != nil:
		return err
	case at.read, e.Activity != at.key.Activity, e.DAD != string(at.key.DAD),
		!v.null(5) && collation.RequestGUID(v.guid(5), at.key.Element) != v.guid(4):
		return nil
	}
	if at.read = true; v.bool(6) {
		return nil
	}
	c.states[at.job].PastPauses[at.key] = &collation.PastPause{
		Generation: v.int(1), Forked: v.bool(8), Seq: v.int(2), Response: e.Response,
	}
	return nil
}

// readPastEffects reads the state of the wanted effects in earlier generations.
func (w *wanted) readPastEffects(l *store.Loaded) []step {
	return asked("effects_past", w.pastKeys, putEffectKey, func(k effectKey, v row) error {
		f, err := readEffect(v[1:])
		if err != nil {
			return err
		}
		h := l.Chains[collation.RowKey{Job: k.chain.job, GUID: k.chain.guid}]
		if h == nil || h.Past[f.Key] != nil { // the latest generation comes first
			return nil
		}
		if h.Past == nil {
			h.Past = make(map[journal.Digest]*collation.PastEffect, 1)
		}
		v = v[1+effectWidth:]
		h.Past[f.Key] = &collation.PastEffect{
			Effect: collation.Effect{
				EffectRow: f, Request: v.guid(0), Seq: v.int(1), Until: collation.Micros(v.int(2)),
			},
			Generation: v.int(3), Undone: v.bool(4), Undoing: v.bool(5),
		}
		return nil
	})
}
