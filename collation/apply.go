package collation

import (
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Apply updates the state by a plan that is committed, or about to be, so that the next message
// of the job in the same batch sees its effect.
func (s *State) Apply(p *Plan) {
	if p.Entry == nil {
		s.applyRows(p)
		return
	}
	for _, w := range p.Ledgers {
		if old := s.Instances[w.Key]; old == nil || old.ResultSeq != w.ResultSeq {
			delete(s.Results, w.Key) // the loaded result is outdated
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
			s.Whole, s.Born = false, false // the result must be loaded
		}
	}
	if r := p.Entry.Response; r != nil && !r.Ref.IsZero() {
		s.Whole, s.Born = false, false // the output is not in the entry
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

// applyEffect updates the loaded effects of a request.
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

// set writes into a map that may still be nil.
func set[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V, 1)
	}
	(*m)[k] = v
}

// know stores a result that is not in the database yet.
func (s *State) know(key InstanceKey, r *flow.Result) {
	s.Results[key] = r
	if !strings.HasSuffix(key.Activity, "]") { // the result of one element is not that of its activity
		set(&s.Latest, key.Activity, r)
	}
}

// adopt keeps the result that this plan took from the response of an earlier entry. That
// happens when another process committed the entry apart from its work (C11). The store cannot
// give the result before the commit.
func (s *State) adopt(p *Plan, r *Receipt) {
	for _, w := range p.Ledgers {
		if w.ResultSeq == r.Seq && r.Response != nil && r.Response.Ref.IsZero() {
			s.know(w.Key, responseResult(r.Response))
		}
	}
}

// ResultAt reads the result of an instance out of the entry that holds it. For an element that
// is the response, even where the entry also holds the result of the whole activity.
func ResultAt(e *journal.Entry, key InstanceKey) *flow.Result {
	if strings.HasSuffix(key.Activity, "]") && e.Response != nil {
		return responseResult(e.Response)
	}
	return ResultOf(e)
}
