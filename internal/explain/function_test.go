package explain_test

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// asleep adds the request of a function that suspended in turn 3.
func (w *world) asleep() {
	r := w.request("charge", "pay.charge", 1)
	r.Turn, r.TurnSent, r.NextAt = 4, 3, collation.Never
}

// function is its request.
func (w *world) function() *collation.Row {
	return &w.Rows[slices.IndexFunc(w.Rows, func(r collation.Row) bool { return r.Kind == journal.MessageRequest })]
}

// pause lets it wait for one thing more.
func (w *world) pause(kind journal.PauseKind, name string) {
	w.pausesFor(journal.PauseRef{Kind: kind, Name: name, Position: fmt.Sprint(len(w.function().Pauses) + 1)})
}

// undoing lets it wait for the next run of a compensation that failed so often.
func (w *world) undoing(name string, failures int) { w.pausesFor(journal.UndoPause(name, failures)) }

func (w *world) pausesFor(ref journal.PauseRef) {
	r := w.function()
	r.Pauses = append(r.Pauses, collation.Pause{PauseRef: ref, GUID: collation.PauseGUID(r.GUID, ref)})
}

// alarm adds the timer of a pause, or the timeout of its wait.
func (w *world) alarm(pause int, at collation.Micros) {
	request := w.function()
	g, p := request.GUID, request.Pauses[pause]
	r := w.timer(journal.MessageWakeUp, "charge", at)
	r.GUID = p.GUID
	if p.Kind == journal.PauseSignal {
		r.GUID = collation.TimeoutGUID(p.GUID)
	}
	r.Body = journal.EncodeResponse(&journal.Response{
		Kind: journal.ResponseWake, Code: 200, By: journal.ByTimer, Request: g,
	})
}

// waitsFor adds the wait of a pause.
func (w *world) waitsFor(pause int, topic, key string) {
	x := w.wait("charge", topic)
	x.GUID, x.Key, x.Request = w.function().Pauses[pause].GUID, key, w.function().GUID
}

// ordered adds the start of the child of a pause.
func (w *world) ordered(pause int) {
	g := w.function().Pauses[pause].GUID
	r := w.row(journal.MessageStart, "")
	r.GUID, r.Job, r.Sender = g, journal.JobID(g), self
	r.Body, _ = json.Marshal(collation.StartOrder{Flow: "invoice", Key: "order-42/inv"})
}

// woken adds the wake-up by a signal, or the outcome of a child.
func (w *world) woken(pause int) {
	request := w.function().GUID
	p := w.function().Pauses[pause]
	r := w.row(journal.MessageWakeUp, "charge")
	r.GUID = p.GUID
	x := &journal.Response{
		Kind: journal.ResponseWake, Code: 200, By: journal.BySignal, Signal: journal.GUID{7}, Request: request,
	}
	if p.Kind == journal.PauseChild {
		r.Kind, r.GUID = journal.MessageOutcome, collation.OutcomeGUID(p.GUID, 0)
		x = &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Child: journal.JobID(p.GUID), Request: request}
	}
	r.Body = journal.EncodeResponse(x)
}
