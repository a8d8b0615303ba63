package main

import (
	"encoding/json"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// summary is a job as ls prints it in JSON.
type summary struct {
	Key        string     `json:"key"`
	Job        string     `json:"job"`
	Generation int64      `json:"generation"`
	Flow       string     `json:"flow"`
	Version    string     `json:"version"`
	State      string     `json:"state"`
	Semaphore  int64      `json:"semaphore"`
	Entries    int64      `json:"entries"`
	Head       string     `json:"head,omitempty"` // the API does not give it
	Tags       []string   `json:"tags,omitempty"`
	Started    *time.Time `json:"started"`
	Closed     *time.Time `json:"closed,omitempty"`
}

func summaryOf(j *store.JobSummary) summary {
	head := ""
	if !j.Head.Hash.IsZero() {
		head = j.Head.Hash.String()
	}
	return summary{
		Key: j.Key, Job: j.ID.String(), Generation: j.Generation, Flow: j.Flow.Name, Version: j.Flow.Version,
		State:     string(j.State),
		Semaphore: j.Semaphore, Entries: j.Head.Seq, Head: head, Tags: j.Tags, Started: stamp(j.Started),
		Closed: stamp(j.Closed),
	}
}

// view is a job as show prints it in JSON.
type view struct {
	summary
	Trace      string          `json:"trace,omitempty"`
	Parent     *parent         `json:"parent,omitempty"`
	Resumes    string          `json:"resumes,omitempty"` // the job that it resumes
	ResumedBy  string          `json:"resumed_by,omitempty"`
	ForkOf     string          `json:"fork_of,omitempty"` // the job that it goes on from, and the entry
	ForkAt     int64           `json:"fork_at,omitempty"`
	Ended      bool            `json:"ended"`
	Code       int             `json:"code,omitempty"`
	Input      *valueView      `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	Error      *failure        `json:"error,omitempty"`
	Expires    *time.Time      `json:"expires,omitempty"`
	Silent     string          `json:"history_error,omitempty"` // why it has no input and no activities
	Activities []activity      `json:"activities"`
	Instances  []instance      `json:"instances"`
	Effects    []jobEffect     `json:"effects"`
	Rows       []row           `json:"rows"`
	Waits      []wait          `json:"waits"`
	Dead       []letter        `json:"dead"`
}

// jobEffect is an effect without its result and entries, which show --effect prints.
type jobEffect struct {
	Effect   string `json:"effect"` // its key
	Name     string `json:"name"`
	State    string `json:"state"` // started, completed, not_done
	Class    string `json:"class"`
	N        int    `json:"n"` // how often it was recorded as not done before
	Failed   bool   `json:"failed,omitempty"`
	Vouched  bool   `json:"vouched,omitempty"`
	Request  string `json:"request"`
	Activity string `json:"activity"`
	DAD      string `json:"dad"`
	Element  *int   `json:"element,omitempty"` // index in a list
	Position string `json:"position,omitempty"`
}

func jobEffectOf(f *store.JobEffect) jobEffect {
	return jobEffect{
		Effect: f.Key.String(), Name: f.Name, State: string(f.State), Class: f.Class, N: f.N, Failed: f.Error != nil,
		Vouched: f.Vouched,
		Request: f.Request.String(), Activity: f.Activity, DAD: f.DAD, Position: f.Position,
	}
}

// activity is the input and the outcome of an activity, or of one element of its list.
type activity struct {
	Activity string     `json:"activity"`
	DAD      string     `json:"dad"`
	Element  *int       `json:"element,omitempty"`
	State    string     `json:"state"` // the kind of its last event, as in log
	Text     string     `json:"text"`
	Code     int        `json:"code,omitempty"`
	Attempts int        `json:"attempts,omitempty"`
	Input    *valueView `json:"input,omitempty"`
	Output   *valueView `json:"output,omitempty"`
	Error    *failure   `json:"error,omitempty"`
	Job      string     `json:"job,omitempty"` // the child of an await
	WaitedUS int64      `json:"waited_us,omitempty"`
	RanUS    int64      `json:"ran_us,omitempty"`
}

func activityOf(x *history.Activity) activity {
	a := activity{
		Activity: x.Activity, DAD: x.Address, State: string(x.Last.Kind), Text: x.Last.Text, Code: x.Last.Code,
		Attempts: x.Attempts,
		Input:    valueOf(x.Input), Output: valueOf(x.Output), Error: failureOf(x.Error),
		WaitedUS: x.Waited.Microseconds(), RanUS: x.Ran.Microseconds(),
	}
	if x.Element >= 0 {
		a.Element = &x.Element
	}
	if !x.Last.Job.IsZero() {
		a.Job = x.Last.Job.String()
	}
	return a
}

// parent is the await that started a job.
type parent struct {
	Job      string `json:"job"`
	Activity string `json:"activity"`
	DAD      string `json:"dad"`
	Awaited  bool   `json:"awaited"`
}

func parentOf(p *journal.Parent) *parent {
	if p == nil {
		return nil
	}
	return &parent{p.Job.String(), p.Activity, p.DAD, p.Awaited}
}

type failure struct {
	Class   string          `json:"class"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func failureOf(f *journal.Failure) *failure {
	if f == nil {
		return nil
	}
	return &failure{Class: f.Class, Message: f.Message, Data: raw(f.Data)}
}

// instance is an instance with its digits in words. Elements and Ended are set for `each`, Child
// for an await.
type instance struct {
	Activity string `json:"activity"`
	DAD      string `json:"dad"`
	Ledger   string `json:"ledger"`
	State    string `json:"state"`
	Decoded  string `json:"decoded"`
	Leg1     int    `json:"leg1_entries"`
	Complete bool   `json:"leg1_complete"`
	Taken    bool   `json:"join_taken,omitempty"`
	Arrivals int    `json:"arrivals,omitempty"`
	Leg2     int    `json:"leg2_entries"`
	Code     int    `json:"code,omitempty"`
	Elements int    `json:"elements,omitempty"`
	Ended    int    `json:"ended,omitempty"`
	Child    string `json:"child,omitempty"`

	digits collation.ActivityLedger
}

func instanceOf(key collation.InstanceKey, i *collation.Instance) instance {
	l := i.Ledger
	out := instance{
		Activity: key.Activity, DAD: string(key.DAD), Ledger: l.String(), State: stateOf(l), Decoded: decoded(i),
		Leg1: l.Leg1Entries(), Complete: l.Leg1Complete(), Taken: l.JoinTaken(), Arrivals: l.Arrivals(),
		Leg2: l.Leg2Entries(),
		Code: i.Code, Elements: i.Count, digits: l,
	}
	if i.Count > 0 {
		out.Ended = i.Count - i.Open
	}
	if !i.Child.IsZero() {
		out.Child = i.Child.String()
	}
	return out
}

// wait is an open wait for a signal.
type wait struct {
	Activity   string     `json:"activity"`
	DAD        string     `json:"dad"`
	Topic      string     `json:"topic"`
	Key        string     `json:"key"`
	Repeat     bool       `json:"repeat,omitempty"`
	Signals    int        `json:"signals,omitempty"` // so far
	Since      *time.Time `json:"since,omitempty"`
	SinceEntry int64      `json:"since_entry,omitempty"`
}

func waitOf(w *collation.Wait) wait {
	return wait{
		Activity: w.Activity, DAD: string(w.DAD), Topic: w.Topic, Key: w.Key, Repeat: w.Repeat, Signals: w.Count,
		Since: stamp(w.Since), SinceEntry: w.Origin,
	}
}

type row struct {
	GUID        string     `json:"guid"`
	Kind        string     `json:"kind"`
	Activity    string     `json:"activity"`
	DAD         string     `json:"dad"`
	Topic       string     `json:"topic,omitempty"`
	Element     int        `json:"element,omitempty"`
	Child       string     `json:"child,omitempty"` // the job whose start it is
	Turn        int        `json:"turn"`
	Attempt     int        `json:"attempt"`
	Runs        int        `json:"runs"`
	Publication int        `json:"publication"`
	Published   *time.Time `json:"published,omitempty"`
	Next        *time.Time `json:"next,omitempty"`
	Held        string     `json:"held,omitempty"`
	Holder      string     `json:"holder,omitempty"`
	Session     int64      `json:"session,omitempty"`
	Pauses      []paused   `json:"pauses,omitempty"`
}

// paused is an open wait of the durable function of a request.
type paused struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Position string `json:"position"`
	Came     bool   `json:"came,omitempty"`
}

func rowOf(r *collation.Row) row {
	out := row{
		GUID: r.GUID.String(), Kind: string(r.Kind), Activity: r.Activity, DAD: string(r.DAD), Topic: r.Topic,
		Element: r.Element, Turn: r.Turn, Attempt: r.Attempt,
		Runs: r.Runs, Publication: r.Publication, Published: stamp(r.PublishedAt), Next: stamp(r.NextAt), Held: r.Held,
		Holder: r.Holder, Session: r.Session,
	}
	if r.Kind == journal.MessageStart && !r.Sender.IsZero() {
		out.Child = r.Job.String()
	}
	for i := range r.Pauses {
		p := &r.Pauses[i]
		out.Pauses = append(out.Pauses, paused{string(p.Kind), p.Name, p.Position, p.Came})
	}
	return out
}

type letter struct {
	ID       int64      `json:"id"`
	Key      string     `json:"key,omitempty"`
	Job      string     `json:"job,omitempty"`
	State    string     `json:"state"`
	Kind     string     `json:"kind,omitempty"`
	Activity string     `json:"activity,omitempty"`
	DAD      string     `json:"dad,omitempty"`
	Reason   string     `json:"reason"`
	Message  string     `json:"message"`
	Ledger   string     `json:"ledger,omitempty"`
	At       *time.Time `json:"at"`
}

func letterOf(d *quipu.DeadLetter) letter {
	l := letter{
		ID: d.ID, Key: d.Job.Key, State: string(d.State), Kind: string(d.Kind), Activity: d.Activity, DAD: d.Address,
		Ledger: d.Ledger,
		Reason: string(d.Reason), Message: d.Message, At: timeOf(d.At),
	}
	if !d.Job.ID.IsZero() {
		l.Job = d.Job.ID.String()
	}
	return l
}

// timeOf returns a time for JSON, nil for the zero time.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func viewOf(j *shown) view {
	silent := ""
	if j.silent != nil {
		silent = j.silent.Error()
	}
	v := view{
		summary: summaryOf(&j.JobSummary), Trace: j.Trace, Parent: parentOf(j.Parent), Ended: j.Ended, Code: j.Code,
		Input: valueOf(j.input), Output: raw(j.Output), Error: failureOf(j.Error), Expires: stamp(j.ExpiresAt),
		Silent: silent, Activities: []activity{}, Instances: []instance{}, Effects: []jobEffect{}, Rows: []row{},
		Waits: []wait{}, Dead: []letter{},
	}
	switch from := j.From; {
	case from == nil:
	case from.Forks():
		v.ForkOf, v.ForkAt = from.Job.String(), from.Fork.At
	default:
		v.Resumes = from.Job.String()
	}
	if !j.Next.IsZero() {
		v.ResumedBy = j.Next.String()
	}
	for i := range j.activities {
		v.Activities = append(v.Activities, activityOf(&j.activities[i]))
	}
	for i := range j.Instances {
		v.Instances = append(v.Instances, instanceOf(j.Instances[i].Key, &j.Instances[i].Instance))
	}
	for i := range j.effects {
		f := jobEffectOf(&j.effects[i])
		if element, listed := j.elements[j.effects[i].Request]; listed {
			f.Element = &element
		}
		v.Effects = append(v.Effects, f)
	}
	for i := range j.Waits {
		v.Waits = append(v.Waits, waitOf(&j.Waits[i]))
	}
	for i := range j.Rows {
		v.Rows = append(v.Rows, rowOf(&j.Rows[i]))
	}
	for i := range j.letters {
		v.Dead = append(v.Dead, letterOf(&j.letters[i]))
	}
	return v
}
