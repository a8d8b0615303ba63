package explain_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/edit"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

const (
	second = collation.Micros(1e6)
	minute = 60 * second
	hour   = 60 * minute
)

// now is 2026-11-21 12:00:00 UTC.
const now = collation.Micros(1795262400e6)

var (
	self  = collation.NewJobID("shop", "order-42", 1)
	other = collation.NewJobID("shop", "order-42/bill-1", 1)
	leg1  = collation.RequestGUID(self.Start(), 0)
)

// world is a view of an open job that began a minute ago, to be filled in.
type world struct {
	*store.JobView
	job    explain.Job
	jobs   map[journal.JobID]*store.JobSummary // that Find finds
	silent []store.ProcessView
}

// everything has one activity of each kind, diamond a join in a loop with one branch of two
// activities, and a join before that join.
const (
	everything = "everything"
	diamond    = "diamond"
)

func newWorld(t *testing.T, name string) *world {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".yaml")
	require.NoError(t, err)
	return worldOf(t, text)
}

func worldOf(t *testing.T, text []byte) *world {
	t.Helper()
	f, err := flow.Parse("f.yaml", text)
	require.NoError(t, err)
	v := &store.JobView{}
	v.ID, v.Space, v.Key, v.Generation, v.State, v.Semaphore = self, "shop", "order-42", 1, journal.JobOpen, 1
	v.Started, v.Flow.Name = now-minute, f.Name()
	w := &world{JobView: v, job: explain.Job{View: v, Flow: f, Now: now}, jobs: map[journal.JobID]*store.JobSummary{}}
	w.instance("start", ",0", 101100000000001)
	return w
}

func (w *world) instance(name string, dad collation.DAD, l collation.ActivityLedger) *collation.Instance {
	w.Instances = append(w.Instances, store.InstanceView{
		Key: collation.InstanceKey{Activity: name, DAD: dad}, Instance: collation.Instance{Ledger: l},
	})
	return &w.Instances[len(w.Instances)-1].Instance
}

// row adds an open row that was sent 4 s ago and is looked at again in 1 s.
func (w *world) row(kind journal.MessageKind, name string) *collation.Row {
	dad := collation.DAD(",0,0")
	if name == "" {
		dad = collation.RootDAD
	}
	w.Rows = append(w.Rows, collation.Row{
		GUID: collation.RequestGUID(leg1, len(w.Rows)), Job: self, Kind: kind, Activity: name, DAD: dad,
		Publication: 1, PublishedAt: now - 4*second, NextAt: now + second,
	})
	return &w.Rows[len(w.Rows)-1]
}

// request adds the instance and the request of a worker, sent 4 s ago.
func (w *world) request(name, topic string, attempt int) *collation.Row {
	w.instance(name, ",0,0", 1100000000000+collation.ActivityLedger(attempt-1))
	return w.element(name, topic, attempt)
}

// element adds a request of an instance.
func (w *world) element(name, topic string, attempt int) *collation.Row {
	r := w.row(journal.MessageRequest, name)
	r.Topic, r.Turn, r.Attempt, r.TurnSent = topic, attempt, attempt, attempt
	return r
}

// timer adds a wake-up by the clock, or the answer of `within`, with a due time.
func (w *world) timer(kind journal.MessageKind, name string, at collation.Micros) *collation.Row {
	r := w.row(kind, name)
	r.Publication, r.PublishedAt, r.NextAt = 0, collation.Never, at
	r.Body = journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: 200, By: journal.ByTimer})
	if kind == journal.MessageAnswer {
		r.Body = journal.EncodeResponse(&journal.Response{
			Kind: journal.ResponseTerminal, Code: 408, Error: &journal.Failure{Class: "within", Message: "late"},
		})
	}
	return r
}

// brings puts the answer of a worker, or a wake-up by a signal, into the last row.
func (w *world) brings(kind journal.ResponseKind, by journal.By) {
	w.Rows[len(w.Rows)-1].Body = journal.EncodeResponse(&journal.Response{Kind: kind, Code: 200, By: by})
}

func (w *world) wait(name, topic string) *collation.Wait {
	w.Waits = append(w.Waits, collation.Wait{
		GUID: collation.WakeUpGUID(leg1, journal.BySignal, name), Job: self, Activity: name, DAD: ",0,0",
		Topic: topic, Key: "order 42", Since: now - minute,
	})
	return &w.Waits[len(w.Waits)-1]
}

// waiting adds the instance of a hook or an await that waits.
func (w *world) waiting(name string) *collation.Instance {
	i := w.instance(name, ",0,0", 1100000000000)
	i.Leg1 = leg1
	return i
}

// await adds an await, with its child.
func (w *world) await(name string, attempt int) {
	i := w.waiting(name)
	i.Turn, i.Attempt, i.Child = attempt, attempt, other
}

// cut has the last row wait for an effect of a class that was cut off and lasts for so many seconds at most.
func (w *world) cut(class, name, holder string, seconds int) {
	r := &w.Rows[len(w.Rows)-1]
	w.job.Cut = append(w.job.Cut, store.Awaited{
		What: store.WaitsEffect, Topic: name, Class: class, Holder: holder, Request: r.GUID,
		Due: now + collation.Micros(seconds)*second,
	})
}

// order adds the start of the child.
func (w *world) order() *collation.Row {
	r := w.row(journal.MessageStart, "")
	r.Job, r.Sender = other, self
	r.Body, _ = json.Marshal(collation.StartOrder{Flow: "invoice", Key: "order-42/bill-1"})
	return r
}

// interrupt adds an interrupt from a client.
func (w *world) interrupt(code int, reason string) {
	w.row(journal.MessageInterrupt,
		"").Body, _ = json.Marshal(collation.InterruptOrder{Code: code, Reason: reason, From: "a client"})
}

// letter adds an open dead letter for the last row.
func (w *world) letter(reason, message string) {
	w.loose(reason, message)
	l, r := &w.Dead[len(w.Dead)-1].Letter, &w.Rows[len(w.Rows)-1]
	l.Row, l.Kind, l.Activity, l.DAD = r.GUID, r.Kind, r.Activity, r.DAD
	r.Held, r.Dead = reason, true
}

// loose adds an open dead letter without a row.
func (w *world) loose(reason, message string) {
	w.Dead = append(w.Dead, store.DeadView{
		ID: int64(7 + len(w.Dead)), At: now - 2*minute, State: "open",
		Letter: collation.DeadLetter{Job: self, Reason: reason, Message: message},
	})
}

// find lets jobs be looked up; known is one of them.
func (w *world) find() {
	w.job.Find = func(id journal.JobID) *store.JobSummary { return w.jobs[id] }
}

func (w *world) known(id journal.JobID, s journal.JobState, key string) {
	w.find()
	w.jobs[id] = &store.JobSummary{Job: collation.Job{ID: id, Space: "shop", Key: key, Generation: 1, State: s}}
}

// resumed is its next generation.
func (w *world) resumed(s journal.JobState, key string) {
	id := collation.NewJobID("shop", key, 2)
	w.jobs[id] = &store.JobSummary{Job: collation.Job{ID: id, Space: "shop", Key: key, Generation: 2, State: s}}
}

// closed ends the job, by an entry of charge.
func (w *world) closed(s journal.JobState, code int, message string) {
	w.State, w.Code, w.Closed, w.Ended, w.Semaphore = s, code, now-20*second, true, 0
	if message != "" {
		w.Error = &journal.Failure{Class: "error", Message: message}
	}
	w.job.Last = &journal.Entry{Kind: journal.KindLeg2, Activity: "charge", DAD: ",0,0"}
}

// output fails the output of the flow.
func (w *world) output(expression, why string) {
	w.closed(journal.JobFailed, 500, "output: ${ "+expression+" }: "+why)
	w.Error.Class = collation.ReasonExpression
	w.job.Last.Activity, w.Flow.Version = "merge", "3"
	for _, name := range []string{"charge", "items", "bill"} {
		w.instance(name, ",0,0", 201100000000001)
	}
}

// limit gives charge a limit.
func (w *world) limit(key, value string) {
	text, _ := os.ReadFile("testdata/everything.yaml")
	w.job.Flow, _ = flow.Parse("f.yaml", []byte(strings.Replace(string(text), "pay.charge,", "pay.charge, "+key+": "+value+",", 1)))
}

// serves adds a living process, with the topic of its handler, if any.
func (w *world) serves(engine bool, topics []string) {
	name := fmt.Sprintf("p%d", len(w.job.Processes)+1)
	w.job.Processes = append(w.job.Processes,
		store.ProcessView{Process: store.Process{Name: name, Engine: engine, Topics: topics}})
}

// heard adds a living process that was last heard of so many seconds ago.
func (w *world) heard(name string, seconds int) {
	w.serves(true, nil)
	p := &w.job.Processes[len(w.job.Processes)-1]
	p.Name, p.Lease, p.Renewed = name, 3*time.Second, w.job.Now-collation.Micros(seconds)*second
}

// outside has somebody take the requests of a topic who is no process of the space.
func (w *world) outside(topic string) {
	w.job.Elsewhere = func(of string) (is, seen bool) { return of == topic, true }
}

// judge says what is wrong with the space of the job, as its processes tell.
func (w *world) judge() {
	if w.job.Processes != nil {
		w.job.Wrong = health.Space(&health.Sight{
			Now: time.UnixMicro(int64(w.job.Now)), Living: w.job.Processes, Silent: w.silent,
			Open: w.job.View.State == journal.JobOpen,
		})
	}
}

// tells has the last process tell of a trouble that stops it, since so many seconds.
func (w *world) tells(kind, text string, seconds int) {
	p := &w.job.Processes[len(w.job.Processes)-1]
	p.Troubles = append(p.Troubles,
		store.Trouble{Kind: kind, Text: text, Since: w.job.Now - collation.Micros(seconds)*second, Stops: true})
}

// quiet adds a process, an engine or not, that was not heard of for so many seconds.
func (w *world) quiet(name string, engine bool, seconds int) {
	w.silent = append(w.silent, store.ProcessView{
		Process: store.Process{Name: name, Engine: engine}, Renewed: w.job.Now - collation.Micros(seconds)*second,
	})
}

// busy adds a living engine that has been deciding on the message of the last row, or of a response.
func (w *world) busy(name string, seconds int, response bool) {
	w.serves(true, nil)
	p := &w.job.Processes[len(w.job.Processes)-1]
	p.Name, p.Busy = name, store.Busy{For: time.Duration(seconds) * time.Second, Job: w.ID}
	if !response {
		p.Busy.Message = w.Rows[len(w.Rows)-1].GUID
	}
}

// editor knows what the lines of a transcript may name.
func (w *world) editor() *edit.Editor {
	return &edit.Editor{Names: map[string]any{
		"now": now, "second": second, "minute": minute, "hour": hour, "never": collation.Never, "done": 201100000000001,
		"self": self, "other": other, "leg1": leg1, "stack": top + thrown + origin + below, "long": strings.Repeat("ü", 150),
		"instance": w.instance, "row": w.row, "request": w.request, "element": w.element, "timer": w.timer, "brings": w.brings,
		"wait": w.wait, "waiting": w.waiting, "await": w.await, "order": w.order, "cut": w.cut, "interrupt": w.interrupt, "letter": w.letter,
		"loose": w.loose, "find": w.find, "known": w.known, "closed": w.closed, "limit": w.limit, "serves": w.serves, "busy": w.busy, "tells": w.tells, "quiet": w.quiet,
		"heard": w.heard, "outside": w.outside,
		"resumed": w.resumed, "output": w.output, "asleep": w.asleep, "pause": w.pause, "alarm": w.alarm, "waitsFor": w.waitsFor,
		"undoing": w.undoing, "ordered": w.ordered, "woken": w.woken, "start": journal.JobID.Start, "nobody": func() []store.ProcessView {
			return []store.ProcessView{}
		},
	}, Root: func(name string) any {
		switch name {
		case "row":
			return &w.Rows[len(w.Rows)-1]
		case "inst":
			return &w.Instances[len(w.Instances)-1]
		case "wait":
			return &w.Waits[len(w.Waits)-1]
		case "last":
			return &w.job.Last
		case "job":
			return &w.job
		}
		return edit.Field(w.JobView, name)
	}}
}

// reasons writes what Why says: of each reason its kind, when it is due, what it says, and what a
// person can do. At most two clauses come before that.
func (w *world) reasons(t *testing.T) string {
	var b strings.Builder
	w.judge()
	for _, r := range explain.Why(&w.job) {
		fmt.Fprintf(&b, "%s", r.Kind)
		if !r.Due.IsZero() {
			fmt.Fprintf(&b, ", due in %d s", (collation.Micros(r.Due.UnixMicro())-now)/second)
		}
		fmt.Fprintf(&b, ": %s\n", r.Text)
		if len(r.Remedies) > 0 {
			require.LessOrEqual(t, strings.Count(r.Text, "; "), 1, r.Text)
		}
		for _, m := range r.Remedies {
			if m.First != "" {
				fmt.Fprintf(&b, "  %s:\n", m.First)
			}
			if m.Command != "" {
				fmt.Fprintf(&b, "  $ %s\n", m.Command)
			}
		}
		for _, n := range r.Notes {
			fmt.Fprintf(&b, "  (%s)\n", n)
		}
	}
	return strings.NewReplacer(self.String(), "SELF", other.String(), "OTHER").Replace(b.String())
}

// TestTranscripts explains the jobs of the files in testdata (5.3). Each command builds a view of
// a job of the flow everything, or of diamond if that is its argument: why says what Why says of
// it, graph draws it, with lines=… in so many lines.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				name := everything
				if d.HasArg(diamond) {
					name = diamond
				}
				w := newWorld(t, name)
				w.editor().Do(d.Input)
				if d.Cmd == "graph" {
					var style explain.Style
					d.MaybeScanArgs(t, "lines", &style.Lines)
					return explain.Graph(w.job.Flow, explain.Survey(&w.job), style)
				}
				return w.reasons(t)
			})
		})
	}
}
