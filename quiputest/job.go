package quiputest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Job is one job of a world.
type Job struct {
	ID  journal.JobID
	Key string
	w   *World
}

// End is how a job ended.
type End struct {
	State  journal.JobState
	Code   int
	Output json.RawMessage  // canonical
	Error  *journal.Failure // nil for a job that completed
}

// Start begins a job on the active version of a flow. The input is anything that
// encoding/json marshals; json.RawMessage is taken as it is.
func (w *World) Start(flowName, key string, input any) *Job {
	w.t.Helper()
	j, err := w.TryStart(flowName, key, input)
	if err != nil {
		w.t.Fatalf("start job %q: %v", key, err)
	}
	return j
}

// TryStart is Start for a start that may be refused. The error is *store.AlreadyStartedError,
// returned together with the existing job, or wraps store.ErrNotFound, engine.ErrInput or
// engine.ErrKey.
func (w *World) TryStart(flowName, key string, input any) (*Job, error) {
	ctx := context.Background()
	ref, f, err := w.eng.Publisher().Flows.Resolve(ctx, flowName, "")
	if err != nil {
		return nil, err
	}
	return w.start(ref, f, key, input)
}

// Call starts a job that runs one handler, without a flow. The job's input and output are the
// handler's.
func (w *World) Call(topic, key string, input any) *Job {
	w.t.Helper()
	f, err := flow.Call(topic)
	if err != nil {
		w.t.Fatalf("call %s: %v", topic, err)
	}
	w.Deploy(f)
	ref := collation.RefOf(f)
	j, err := w.start(ref, f, key, input)
	if err != nil {
		w.t.Fatalf("call %s, job %q: %v", topic, key, err)
	}
	return j
}

func (w *World) start(ref journal.FlowRef, f *flow.Flow, key string, input any) (*Job, error) {
	body, err := canonical.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", engine.ErrInput, err)
	}
	cfg := w.eng.Config()
	if key, err = engine.CheckStart(f, key, body, cfg.KeptKey, nil); err != nil {
		return nil, err
	}
	started := w.eng.Committer().Start(context.Background(),
		[]store.Start{{Flow: ref, Trigger: f.Trigger().Name, Key: key, Input: body}})
	return &Job{ID: started[0].Job, Key: key, w: w}, started[0].Err
}

// Job returns the job that has the key.
func (w *World) Job(key string) *Job {
	w.t.Helper()
	id, err := w.store.FindJob(context.Background(), key)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.sentences())
	}
	return &Job{ID: id, Key: key, w: w}
}

// Jobs lists all jobs, including children, the oldest first.
func (w *World) Jobs() []*Job {
	w.t.Helper()
	return w.jobs(func(*store.JobView) bool { return true })
}

func (w *World) jobs(want func(*store.JobView) bool) []*Job {
	w.t.Helper()
	var views []*store.JobView
	for v, err := range w.views() {
		if err != nil {
			w.t.Fatalf("list the jobs: %v", err)
		}
		if want(v) {
			views = append(views, v)
		}
	}
	slices.SortStableFunc(views, func(a, b *store.JobView) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.Key, b.Key))
	})
	out := make([]*Job, len(views))
	for i, v := range views {
		out[i] = &Job{ID: v.ID, Key: v.Key, w: w}
	}
	return out
}

// Info reads the present state of the job, with its ledgers and what it waits for.
func (j *Job) Info() *view.Job {
	j.w.t.Helper()
	return inspect.Describe(j.view())
}

func (j *Job) view() *store.JobView {
	j.w.t.Helper()
	v, err := j.w.store.Job(context.Background(), j.ID)
	if err != nil {
		j.w.t.Fatalf("job %q: %v", j.Key, err)
	}
	return v
}

// State returns the present state of the job.
func (j *Job) State() journal.JobState {
	j.w.t.Helper()
	return j.view().State
}

// Why says what the job waits for or how it ended, like `quipu why`.
func (j *Job) Why() string {
	j.w.t.Helper()
	return j.w.why(j.view())
}

// Journal returns the entries of the job, its main chain first.
func (j *Job) Journal() []*journal.Entry {
	j.w.t.Helper()
	return j.w.entries(j.ID)
}

// Children lists the jobs that this one started and that have begun, the oldest first.
func (j *Job) Children() []*Job {
	j.w.t.Helper()
	return j.w.jobs(func(v *store.JobView) bool { return v.Parent != nil && v.Parent.Job == j.ID })
}

// End waits, for any time, until the job has ended, and returns how.
func (j *Job) End() End {
	j.w.t.Helper()
	err := j.w.untilTold(&j.w.ends, j.over)
	v := j.view()
	switch {
	case v.State == journal.JobQuarantined:
		j.w.t.Fatalf("the job is quarantined\n%s", j.Why())
	case err != nil:
		j.w.t.Fatalf("the job does not end\n%s", j.Why())
	}
	return End{State: v.State, Code: v.Code, Output: v.Output, Error: v.Error}
}

// over says that the job goes no further by itself.
func (j *Job) over() bool {
	over, _ := j.w.store.Ended(context.Background(), []journal.JobID{j.ID}) // tables in memory do not fail
	return over[j.ID]
}

// Output waits until the job has completed, and decodes its output into the value that into
// points to, as encoding/json does; nil skips that.
func (j *Job) Output(into any) {
	j.w.t.Helper()
	end := j.End()
	if end.State != journal.JobCompleted {
		j.w.t.Fatalf("the job did not complete: %s", end.text(j.Key))
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(end.Output, into); err != nil {
		j.w.t.Fatalf("the output of job %q does not fit into %T: %v\n%s", j.Key, into, err, end.Output)
	}
}

// Fails waits until the job has failed or was interrupted with the code, and returns the error.
func (j *Job) Fails(code int) *journal.Failure {
	j.w.t.Helper()
	end := j.End()
	if end.State == journal.JobCompleted || end.Code != code || end.Error == nil {
		j.w.t.Fatalf("the job did not end with code %d: %s", code, end.text(j.Key))
	}
	return end.Error
}

func (e *End) text(key string) string {
	if e.Error == nil {
		return fmt.Sprintf("job %q %s with code %d and output %s", key, e.State, e.Code, e.Output)
	}
	return fmt.Sprintf("job %q %s with code %d (%s): %s", key, e.State, e.Code, e.Error.Class, e.Error.Message)
}

// Signal is a signal with all its options.
type Signal struct {
	Topic, Key string
	Payload    any
	Code       int    // 200 if 0; 202 keeps a repeating hook open; 400 to 599 is an error
	All        bool   // to every open wait, and not kept
	ID         string // a second signal with the same ID does nothing; "" makes a new ID
}

// Signal sends a signal to the longest open wait for the topic and the key, or keeps it until
// there is one (1.11). It does not matter which comes first.
func (w *World) Signal(topic, key string, payload any) quipu.SignalResult {
	w.t.Helper()
	return w.Send(Signal{Topic: topic, Key: key, Payload: payload})
}

// Send sends a signal with options.
func (w *World) Send(s Signal) quipu.SignalResult {
	w.t.Helper()
	done, err := w.TrySend(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

// TrySend is Send for a signal that may be refused.
func (w *World) TrySend(s Signal) (quipu.SignalResult, error) {
	ctx := context.Background()
	s.Code = cmp.Or(s.Code, collation.CodeOK)
	body, err := canonical.Marshal(s.Payload)
	switch {
	case err != nil:
		return quipu.SignalResult{}, fmt.Errorf("signal %s: payload: %w", s.Topic, err)
	case !signalTopic.MatchString(s.Topic) || s.Key == "":
		return quipu.SignalResult{}, fmt.Errorf("signal %q, key %q: the topic is parts of a-z, 0-9, _ and - joined by dots, as in a flow; the key is not empty", s.Topic, s.Key)
	case s.Code != collation.CodeOK && s.Code != collation.CodePass && !isError(s.Code):
		return quipu.SignalResult{}, fmt.Errorf("signal %s: code %d: a signal has 200, 202, or 400 to 599", s.Topic, s.Code)
	}
	if s.ID == "" {
		s.ID = fmt.Sprintf("signal %d", w.signals.Add(1))
	}
	done, err := w.eng.Committer().Signal(ctx, collation.Signal{
		GUID: collation.SignalGUID(space, s.Topic, s.Key, s.ID), Topic: s.Topic, Key: s.Key,
		Code: s.Code, Payload: body, All: s.All, Keep: collation.KeepSignal,
	})
	if err != nil {
		err = fmt.Errorf("signal %s, key %q: %w", s.Topic, s.Key, err)
	}
	return quipu.SignalResult{State: quipu.SignalState(done.State), Duplicate: done.Duplicate, Reached: done.Reached},
		err
}

var signalTopic = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*$`)

func isError(code int) bool { return code >= 400 && code <= 599 }

// Interrupt has the options of an interrupt.
type Interrupt struct {
	Code     int    // 410 if 0; 400 to 599
	Reason   string // "interrupted" if empty
	Descend  bool   // also ends the children that it awaits
	Complete bool   // the job ends as completed, with its output
}

// Interrupt ends the job (C15) as soon as the engine handles the message.
func (j *Job) Interrupt(i Interrupt) {
	j.w.t.Helper()
	order := collation.InterruptOrder{
		Code: cmp.Or(i.Code, collation.CodeInterrupted), Reason: cmp.Or(i.Reason, "interrupted"),
		Descend: i.Descend, Throw: !i.Complete, From: "a test",
	}
	if !isError(order.Code) {
		j.w.t.Fatalf("interrupt job %q: code %d: an interrupt has 400 to 599", j.Key, order.Code)
	}
	id := fmt.Sprintf("interrupt %d", j.w.signals.Add(1))
	row, err := order.Row(collation.AskedInterruptGUID(id, j.ID), j.ID, collation.Never)
	if err != nil {
		j.w.t.Fatalf("interrupt job %q: %v", j.Key, err)
	}
	if _, err := j.w.eng.Committer().Interrupt(context.Background(), row, false); err != nil {
		j.w.t.Fatalf("interrupt job %q: %v", j.Key, err)
	}
}
