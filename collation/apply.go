package collation

import (
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Apply moves the state on by a committed or about-to-be-committed plan, so
// that the next message of the job in the same batch meets it.
func (s *State) Apply(p *Plan) {
	if p.Entry == nil {
		s.applyRows(p)
		return
	}
	for _, w := range p.Ledgers {
		if old := s.Instances[w.Key]; old == nil || old.ResultSeq != w.ResultSeq {
			delete(s.Results, w.Key) // what was loaded says what was
		}
		s.Instances[w.Key] = &Instance{Ledger: w.After, ResultSeq: w.ResultSeq, Code: w.Code, More: w.More}
	}
	if w := p.Receipt; w != nil {
		r := &Receipt{Ledger: w.After, Verdict: w.Verdict, Seq: w.Seq}
		if old := s.Receipts[w.GUID]; old != nil && !w.New {
			r.Response = old.Response
			s.adopt(p, r)
		} else {
			r.Response = p.Entry.Response
		}
		if w.Gone {
			r = nil
		}
		s.Receipts[w.GUID] = r
	}
	s.applyRows(p)
	s.applyEffect(p.Chain)
	s.Job.Semaphore = p.Semaphore.After
	s.Job.Head.Seq = p.Entry.Seq
	if e := p.Entry; e.Writer != "" || e.Build != "" {
		s.Author = Author{e.Writer, e.Build}
	}
	if p.NewState != "" {
		s.Job.State = p.NewState
	}
	if p.Close != nil {
		s.Close = p.Close
	}
	for _, w := range p.Ledgers {
		if w.ResultSeq == p.Entry.Seq {
			s.know(w.Key, ResultAt(p.Entry, w.Key))
		}
		if w.ResultSeq > 0 && s.Results[w.Key] == nil {
			s.Whole = false // it is to be loaded
		}
	}
	if r := p.Entry.Response; r != nil && !r.Ref.IsZero() {
		s.Whole = false // its output stands beside the entry
	}
}

func (s *State) applyRows(p *Plan) {
	for _, rows := range [][]Row{p.Insert, p.Update} {
		for i := range rows {
			row := rows[i]
			s.Rows[row.GUID] = &row
		}
	}
	for _, g := range p.Delete {
		s.Rows[g] = nil
	}
	for _, k := range p.CancelStarts {
		s.Rows[k.GUID] = nil
	}
	for i := range p.Waits {
		w := p.Waits[i]
		set(&s.Waits, w.GUID, &w)
	}
	for _, w := range p.CancelWaits {
		set(&s.Waits, w.GUID, nil)
	}
}

// applyEffect moves on what was loaded of the effects of a request.
func (s *State) applyEffect(w *ChainWrite) {
	if w == nil {
		return
	}
	record := slices.Clone(s.Record[w.Request])
	unfinished := false
	for i := range record {
		if record[i].Key == w.Effect.Key {
			record[i] = w.Effect.EffectRow
		}
		unfinished = unfinished || record[i].State == EffectStarted && record[i].Class != ClassUndo
	}
	set(&s.Record, w.Request, record)
	set(&s.Unfinished, w.Request, unfinished)
}

// set writes into a map that may not be there yet.
func set[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V, 1)
	}
	(*m)[k] = v
}

// know takes over a result that the store does not have yet.
func (s *State) know(key InstanceKey, r *flow.Result) {
	s.Results[key] = r
	if !strings.HasSuffix(key.Activity, "]") { // an element is no result of its activity
		set(&s.Latest, key.Activity, r)
	}
}

// adopt keeps the result that the plan took from a response which an earlier
// entry recorded: a process that enters apart from its work (C11) may have left
// the work to this one. The store cannot give it before the commit.
func (s *State) adopt(p *Plan, r *Receipt) {
	for _, w := range p.Ledgers {
		if w.ResultSeq == r.Seq && r.Response != nil && r.Response.Ref.IsZero() {
			s.know(w.Key, responseResult(r.Response))
		}
	}
}

// ResultAt reads a result out of the entry that holds it: of an element the
// response, although the entry may hold that of the whole activity, too.
func ResultAt(e *journal.Entry, key InstanceKey) *flow.Result {
	if strings.HasSuffix(key.Activity, "]") && e.Response != nil {
		return responseResult(e.Response)
	}
	return ResultOf(e)
}
