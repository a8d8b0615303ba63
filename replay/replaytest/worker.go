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
// once, so that its answer is on its way. A timer's goes out when it is due.
func (w *world) publish(r *collation.Row) {
	m := collation.Message{
		Kind: r.Kind, Job: r.Job, GUID: r.GUID, Row: r.GUID, Activity: r.Activity, DAD: r.DAD, Turn: r.Turn,
	}
	var err error
	switch r.Kind {
	case journal.MessageAnswer:
		m.GUID = r.Answers()
		if w.state.Receipts[m.GUID] == nil { // once it is accepted, its entry has it (1.7)
			m.Response, err = journal.DecodeResponse(r.Body)
		}
	case journal.MessageWakeUp, journal.MessageOutcome, journal.MessageCycle:
		m.Response, err = journal.DecodeResponse(r.Body)
	case journal.MessageRequest:
		w.asked[r.GUID] = r.Turn
		if w.u.o.silent {
			return
		}
		m.Kind, m.GUID = journal.MessageResponse, collation.ResponseGUID(r.GUID, r.Turn)
		w.work(r)
		m.Response = w.respond(r)
	}
	if err != nil {
		panic(err)
	}
	at := collation.Never
	if r.Publication == 0 {
		at = r.NextAt
	}
	w.u.inbox = append(w.u.inbox, letter{m: m, at: at})
	if r.Kind == journal.MessageRequest && r.WithinAt != collation.Never && w.u.o.Trouble && w.u.o.Choose(3) == 0 {
		w.overdue(r.GUID)
	}
}

// overdue ends a request as if its time had passed (E9).
func (w *world) overdue(g journal.GUID) {
	late := *w.state
	late.Now = max(late.Now, late.Rows[g].WithinAt)
	p := collation.Overdue(&late, g, w.u.o.Mode)
	w.commit(p)
	w.publish(w.state.Rows[g])
}

func (w *world) respond(r *collation.Row) *journal.Response {
	o := &w.u.o
	if o.Respond != nil {
		if resp := o.Respond(r.Activity, r.Turn); resp != nil {
			return resp
		}
	}
	if r.Topic == FunctionTopic {
		if resp := w.suspend(r); resp != nil {
			return resp
		}
	}
	resp := w.answer(r)
	w.compensate(r, resp)
	return resp
}

// answer chooses how a request is answered.
func (w *world) answer(r *collation.Row) *journal.Response {
	o := &w.u.o
	choice := 0
	if o.Trouble {
		choice = o.Choose(20)
	}
	switch {
	case choice >= 15 && choice < 18:
		return &journal.Response{
			Kind: journal.ResponseFailedAttempt, Code: 503,
			Error: &journal.Failure{Class: "error", Message: "no luck", Stack: "main.go:1"},
		}
	case choice == 18:
		return &journal.Response{
			Kind: journal.ResponseTerminal, Code: 409, Error: &journal.Failure{Class: "conflict", Message: "taken", Data: []byte(`{"by":"x"}`)},
		}
	case choice == 19:
		return &journal.Response{Kind: journal.ResponseParked, Code: 500, Error: &journal.Failure{Class: "parked", Message: "unknown"}}
	}
	output := fmt.Appendf(nil, `{"turn":%d}`, r.Turn)
	if o.Every {
		output = fmt.Appendf(nil, `{"again":%t,"turn":%d}`, o.Choose(3) == 1, r.Turn)
	}
	return &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: output}
}

var classes = []string{"guarded", "idempotent", "pure", "tx"}

// work records the effects of one run of a request (3.1).
func (w *world) work(r *collation.Row) {
	if !w.u.o.Effects {
		return
	}
	for n := range 1 + w.u.o.Choose(2) {
		name := fmt.Sprintf("effect-%d", n)
		e := journal.Effect{
			Key:  sha256.Sum256(fmt.Appendf(nil, "%s %s", r.GUID, name)),
			Name: name, Class: classes[w.u.o.Choose(len(classes))], Turn: r.Turn, Fence: int64(r.Turn),
		}
		if r.Topic == FunctionTopic {
			e.Position = fmt.Sprint(n + 1)
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
		if external && w.u.o.Choose(4) == 0 {
			w.late = append(w.late, lateEffect{r.GUID, e, len(w.main) + w.u.o.Choose(6)})
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
		next.Undo = next.Undo || e.Class == replay.ClassUndo
		w.state.Rows[request] = &next
	}
	w.store(kind, &e)
}

func (w *world) store(kind journal.Kind, e *journal.Effect) {
	s := replay.StoredEffect{
		Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, Position: e.Position, State: replay.EffectStarted,
	}
	switch kind {
	case journal.KindEffectCompleted:
		s.State, s.Result = replay.EffectCompleted, replay.ResultDigest(e.Result, e.Error)
	case journal.KindEffectFailed:
		s.State, s.Result = replay.EffectNotDone, replay.ResultDigest(e.Result, e.Error)
	}
	for i := range w.effects {
		if w.effects[i].Key == e.Key {
			w.effects[i] = s
			return
		}
	}
	w.effects = append(w.effects, s)
}

// compiled are the flows of all journals.
var compiled = replay.NewFlows("")

// journal takes down what is stored now.
func (w *world) journal() *Journal {
	job := &w.state.Job
	out := &Journal{
		Header: replay.Header{
			Space: job.Space, Job: job.ID, Key: job.Key, Generation: job.Generation, Head: job.Head, Flow: job.Flow.Digest,
		},
		Stored:  w.stored(),
		Beside:  &replay.Beside{Whole: true, Definition: w.state.Flow.Canonical(), Flows: compiled, Payloads: map[journal.Digest]replay.Payload{}},
		Records: w.main,
	}
	for d, body := range w.u.o.Payloads {
		out.Beside.Payloads[d] = replay.Payload{Sum: sha256.Sum256(body), Body: body}
	}
	slices.SortFunc(w.order, func(a, b journal.GUID) int { return bytes.Compare(a[:], b[:]) })
	for _, g := range w.order {
		out.Records = append(out.Records, w.chains[g]...)
	}
	return out
}
