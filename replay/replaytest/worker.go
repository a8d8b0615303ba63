package replaytest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// publish puts out the message of a row; a request is answered by a worker at
// once, so that its answer is on its way.
func (w *world) publish(r *collation.Row) {
	m := collation.Message{
		Kind: r.Kind, Job: r.Job, GUID: r.GUID, Row: r.GUID, Activity: r.Activity, DAD: r.DAD, Turn: r.Turn,
	}
	switch r.Kind {
	case journal.MessageAnswer:
		m.GUID = r.Answers()
		m.Response = &journal.Response{
			Kind: journal.ResponseTerminal, Code: collation.CodeInternal,
			Error: &journal.Failure{Class: collation.ReasonExpression, Message: "no such key"},
		}
	case journal.MessageRequest:
		m.Kind, m.GUID = journal.MessageResponse, collation.ResponseGUID(r.GUID, r.Turn)
		w.work(r)
		m.Response = w.respond(r)
	}
	w.inbox = append(w.inbox, m)
}

func (w *world) respond(r *collation.Row) *journal.Response {
	if w.o.Respond != nil {
		if resp := w.o.Respond(r.Activity, r.Turn); resp != nil {
			return resp
		}
	}
	choice := 0
	if w.o.Trouble {
		choice = w.o.Choose(20)
	}
	switch {
	case choice >= 15 && choice < 18:
		return &journal.Response{
			Kind: journal.ResponseFailedTry, Code: 503,
			Error: &journal.Failure{Class: "error", Message: "no luck", Stack: "main.go:1"},
		}
	case choice == 18:
		return &journal.Response{
			Kind: journal.ResponseTerminal, Code: 409, Error: &journal.Failure{Class: "conflict", Message: "taken", Data: []byte(`{"by":"x"}`)},
		}
	case choice == 19:
		return &journal.Response{Kind: journal.ResponseParked, Code: 500, Error: &journal.Failure{Class: "parked", Message: "unknown"}}
	}
	return &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: fmt.Appendf(nil, `{"turn":%d}`, r.Turn)}
}

var classes = []string{"guarded", "idempotent", "pure", "tx"}

// work records the effects of one run of a request (3.1).
func (w *world) work(r *collation.Row) {
	if !w.o.Effects {
		return
	}
	for n := range 1 + w.o.Choose(2) {
		name := fmt.Sprintf("effect-%d", n)
		e := journal.Effect{
			Key:  sha256.Sum256(fmt.Appendf(nil, "%s %s", r.GUID, name)),
			Name: name, Class: classes[w.o.Choose(len(classes))], Turn: r.Turn, Fence: int64(r.Turn),
		}
		known := slices.IndexFunc(w.effects, func(s replay.StoredEffect) bool { return s.Key == e.Key })
		if known >= 0 {
			if w.effects[known].State != replay.EffectStarted {
				continue // cached: the handler gets the recorded result
			}
			e.Class = w.effects[known].Class
		}
		external := e.Class == "guarded" || e.Class == "idempotent"
		if external {
			w.record(r.GUID, journal.KindEffectStarted, e)
		}
		if external && w.o.Choose(4) == 0 {
			w.late = append(w.late, lateEffect{r.GUID, e, len(w.main) + w.o.Choose(6)})
			continue
		}
		e.Result = []byte(`{"ok":true}`)
		w.record(r.GUID, journal.KindEffectCompleted, e)
	}
}

// finishLate completes effects whose holder comes back after a while (E4, J8).
func (w *world) finishLate() {
	w.late = slices.DeleteFunc(w.late, func(l lateEffect) bool {
		if l.at > len(w.main) {
			return false
		}
		done := slices.ContainsFunc(w.effects, func(s replay.StoredEffect) bool {
			return s.Key == l.effect.Key && s.State != replay.EffectStarted
		})
		if done {
			return true
		}
		row := w.state.Rows[l.request]
		l.effect.Late = row == nil || row.Kind != journal.MessageRequest || row.Turn != l.effect.Turn ||
			w.state.Receipts[collation.ResponseGUID(l.request, l.effect.Turn)] != nil
		l.effect.Result = []byte(`{"late":1}`)
		w.record(l.request, journal.KindEffectCompleted, l.effect)
		return true
	})
}

// record appends to the chain of a request.
func (w *world) record(request journal.GUID, kind journal.Kind, e journal.Effect) {
	chain := w.chains[request]
	if chain == nil {
		w.order = append(w.order, request)
	}
	j := &w.state.Job
	rec := w.chained(chain, &journal.Entry{
		Space: j.Space, Job: j.ID, Generation: j.Generation, Chain: request, Seq: int64(len(chain)) + 1,
		Kind: kind, GUID: request, Effect: &e, Time: int64(w.state.Now),
	})
	w.chains[request] = append(chain, rec)
	if row := w.state.Rows[request]; row != nil {
		next := *row
		next.Effects = journal.Head{Seq: rec.Seq, Hash: rec.Hash}
		w.state.Rows[request] = &next
	}
	w.store(kind, &e)
}

func (w *world) store(kind journal.Kind, e *journal.Effect) {
	s := replay.StoredEffect{Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, State: replay.EffectStarted}
	if kind == journal.KindEffectCompleted {
		s.State, s.Result = replay.EffectCompleted, replay.ResultDigest(e.Result, e.Error)
	}
	for i := range w.effects {
		if w.effects[i].Key == e.Key {
			w.effects[i] = s
			return
		}
	}
	w.effects = append(w.effects, s)
}

// journal takes down what is stored now.
func (w *world) journal() *Journal {
	job := &w.state.Job
	out := &Journal{
		Header: replay.Header{
			Space: job.Space, Job: job.ID, Key: job.Key, Generation: job.Generation, Head: job.Head, Flow: job.Flow.Digest,
		},
		Stored: &replay.Stored{
			State: job.State, Semaphore: job.Semaphore, Effects: w.effects,
			Instances: map[collation.InstanceKey]collation.ActivityLedger{},
			Receipts:  map[journal.GUID]replay.StoredReceipt{},
			Rows:      map[journal.GUID]collation.Row{},
		},
		Records: w.main,
	}
	for k, i := range w.state.Instances {
		if i != nil {
			out.Stored.Instances[k] = i.Ledger
		}
	}
	for g, r := range w.state.Receipts {
		if r != nil {
			out.Stored.Receipts[g] = replay.StoredReceipt{Ledger: r.Ledger, Verdict: r.Verdict}
		}
	}
	for g, r := range w.state.Rows {
		if r != nil {
			out.Stored.Rows[g] = *r
		}
	}
	slices.SortFunc(w.order, func(a, b journal.GUID) int { return bytes.Compare(a[:], b[:]) })
	for _, g := range w.order {
		out.Records = append(out.Records, w.chains[g]...)
	}
	return out
}
