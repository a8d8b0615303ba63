package collation_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// outside is what surrounds the job of a world: rows that went to other jobs, signals that
// nobody waited for, and the jobs that have keys.
type outside struct {
	sent    []collation.Row
	kept    []collation.Signal
	keys    map[string]journal.JobID
	signals int
	past    map[string][]collation.Past // what earlier generations have of instances and elements, by name
	ends    map[journal.JobID]*collation.End
}

// loadMore loads what only some activities need.
func (w *world) loadMore(n *collation.Need) {
	for _, name := range n.Latest {
		var last *collation.Instance
		var at collation.InstanceKey
		for k, i := range w.shelf {
			if k.Activity == name && i != nil && (last == nil || i.ResultSeq > last.ResultSeq) {
				last, at = i, k
			}
		}
		if w.state.Latest == nil {
			w.state.Latest = map[string]*flow.Result{}
		}
		w.state.Latest[name] = w.stored(at)
	}
	for _, key := range n.Keys {
		if w.state.Keys == nil {
			w.state.Keys = map[string]journal.JobID{}
		}
		w.state.Keys[key] = w.keys[key]
	}
	for _, key := range n.Past {
		if w.state.Past == nil {
			w.state.Past = map[collation.InstanceKey][]collation.Past{}
		}
		w.state.Past[key] = w.past[key.Activity]
	}
	for _, key := range n.Pauses { // nothing of them came
		if w.state.PastPauses == nil {
			w.state.PastPauses = map[collation.PauseKey]*collation.PastPause{}
		}
		w.state.PastPauses[key] = nil
	}
	for _, id := range n.Ends {
		if w.state.Ends == nil {
			w.state.Ends = map[journal.JobID]*collation.End{}
		}
		w.state.Ends[id] = w.ends[id]
	}
	if n.Close {
		for _, e := range w.entries {
			if e.Close != nil && w.state.Close == nil {
				w.state.Close = e.Close
			}
		}
	}
}

// registered delivers kept signals to the waits that a plan registered.
func (w *world) registered(p *collation.Plan) {
	for i := range p.Waits {
		x := &p.Waits[i]
		w.names[x.GUID] = "wait " + x.Activity + string(x.DAD)
		for k := range w.kept {
			s := w.kept[k]
			if s.Topic == x.Topic && s.Key == x.Key {
				w.kept = append(w.kept[:k], w.kept[k+1:]...)
				w.signal(&s)
				break
			}
		}
	}
}

// signal delivers like a store: to the oldest wait, or it keeps the signal.
func (w *world) signal(s *collation.Signal) string {
	var to *collation.Wait
	for _, x := range w.state.Waits {
		if x != nil && x.Topic == s.Topic && x.Key == s.Key && x.Takes(s, w.state.Now) &&
			(to == nil || x.Since < to.Since || x.Since == to.Since && x.GUID.String() < to.GUID.String()) {
			to = x
		}
	}
	if to == nil {
		w.kept = append(w.kept, *s)
		return "kept\n"
	}
	row, ends := to.Deliver(s, w.state.Now, w.mode)
	if ends {
		w.state.Waits[to.GUID] = nil
	} else {
		next := *to
		next.Count++
		w.state.Waits[to.GUID] = &next
	}
	w.arrive(&row)
	return fmt.Sprintf("consumed by %s%s\n", to.Activity, to.DAD)
}

// arrive inserts a row that came from outside the job.
func (w *world) arrive(r *collation.Row) {
	row := *r
	w.state.Rows[row.GUID] = &row
	w.publish(&row)
}

func describeResult(b *strings.Builder, e *journal.Entry) {
	if e.Open != nil {
		fmt.Fprintf(b, "  open elements %d\n", *e.Open)
	}
	if r := e.Response; r != nil && r.By != "" {
		fmt.Fprintf(b, "  woken by %s, number %d\n", r.By, r.Number)
	}
	if r := e.Result; r != nil {
		fmt.Fprintf(b, "  result %d %s error %s\n", r.Code, r.Output, failureText(r.Error))
	}
	for _, x := range e.Waits {
		fmt.Fprintf(b, "  + wait %s %s\n", x.Topic, x.Key)
	}
	if x := e.Elements; x != nil {
		fmt.Fprintf(b, "  + %d requests, %d sent\n", x.Count, x.Parallel)
	}
}

// outside runs the commands that come from outside the job.
func (s *script) outside(t *testing.T, d *datadriven.TestData) (string, bool) {
	code := arg(t, d, "code", 200)
	switch d.Cmd {
	case "signal":
		return s.signal(t, d, code), true
	case "timer", "bound":
		return s.timer(t, d), true
	case "outcome":
		return s.outcome(t, d, code), true
	case "interrupt":
		o := &collation.InterruptOrder{Code: arg(t, d, "code", 410), Reason: d.Input, Throw: !d.HasArg("no-throw"), Descend: d.HasArg("descend")}
		row, err := o.Row(collation.AskedInterruptGUID(d.Pos, s.w.state.Job.ID), s.w.state.Job.ID, s.w.state.Now)
		require.NoError(t, err)
		row.Publication = 1
		if d.HasArg("released") { // by an operator
			row.Runs = 1
		}
		s.w.arrive(&row)
		s.last, s.w.queue = s.w.queue[len(s.w.queue)-1], s.w.queue[:len(s.w.queue)-1]
		return s.deliver(false), true
	}
	return "", false
}

func (s *script) signal(t *testing.T, d *datadriven.TestData, code int) string {
	topic, key := arg(t, d, "topic", ""), arg(t, d, "key", "")
	s.w.signals++
	return s.w.signal(&collation.Signal{
		GUID: collation.SignalGUID("test", topic, key, strconv.Itoa(s.w.signals)), Topic: topic, Key: key,
		Code: code, Payload: []byte(d.Input), Sent: s.w.state.Now,
	})
}

// timer fires the timer, or the bound, of an activity.
func (s *script) timer(t *testing.T, d *datadriven.TestData) string {
	kind := map[string]journal.MessageKind{"timer": journal.MessageWakeUp, "bound": journal.MessageAnswer}[d.Cmd]
	for _, r := range s.w.state.Rows {
		if r != nil && r.Kind == kind && r.Activity == d.CmdArgs[0].Key && r.Publication == 0 {
			s.last = *journaltest.Message(r)
			return s.deliver(d.HasArg("once"))
		}
	}
	t.Fatalf("no %s of %s", d.Cmd, d.CmdArgs[0].Key)
	return ""
}

// outcome ends the latest child that an await ordered.
func (s *script) outcome(t *testing.T, d *datadriven.TestData, code int) string {
	for i := len(s.w.sent) - 1; i >= 0; i-- {
		r := &s.w.sent[i]
		if r.Kind != journal.MessageStart {
			continue
		}
		o, err := r.Order()
		require.NoError(t, err)
		if o.Parent.Activity != d.CmdArgs[0].Key {
			continue
		}
		response := &journal.Response{Kind: journal.ResponseTerminal, Code: code, Output: []byte(d.Input)}
		if code != 200 {
			response.Kind, response.Output = journal.ResponseFailedAttempt, nil
			response.Error = &journal.Failure{Class: "error", Message: d.Input}
		}
		row := o.Outcome(r.Job, response, s.w.state.Now, s.w.mode)
		if d.HasArg("refused") {
			row = o.Refusal(r.Job, code, "not_found", d.Input, s.w.state.Now, s.w.mode)
		}
		delete(s.w.state.Rows, r.GUID) // the child has begun and ended
		if s.w.arrive(&row); d.HasArg("later") {
			return ""
		}
		s.last, s.w.queue = s.w.queue[len(s.w.queue)-1], s.w.queue[:len(s.w.queue)-1]
		return s.deliver(d.HasArg("once"))
	}
	t.Fatalf("no child of %s", d.CmdArgs[0].Key)
	return ""
}
