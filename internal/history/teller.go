package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Teller makes the events of one job from its entries.
type Teller struct {
	flow    *flow.Flow
	payload Payload
	job     flow.JobInfo

	main, effects []Event
	answers       []journal.GUID // parallel to main: the request that the event's entry answers
	results       map[collation.InstanceKey]*flow.Result
	requests      map[journal.GUID]*request
	undo          map[journal.JobID]*request // by the id of the job that would run the compensations
	children      map[journal.JobID][]byte   // inputs of children that functions named
	begun         map[call]*journal.Effect   // effects that have a start entry
	judged        map[verdict]string         // who decided
	since         map[any]int64              // start of waits: of hooks by InstanceKey, of functions by pause
}

// Payload returns an output that is stored separately from its entry (E6), by its digest.
type Payload func(journal.Digest) ([]byte, error)

// New makes the Teller of a job. f is the job's version of its flow; without it no inputs
// are told. Without payload, outputs that are stored separately are not told.
func New(f *flow.Flow, payload Payload) *Teller {
	return &Teller{
		flow: f, payload: payload, results: map[collation.InstanceKey]*flow.Result{},
		requests: map[journal.GUID]*request{}, since: map[any]int64{}, children: map[journal.JobID][]byte{},
		undo:  map[journal.JobID]*request{},
		begun: map[call]*journal.Effect{}, judged: map[verdict]string{},
	}
}

// request is a request that was sent: its place, and since when its attempt is due.
type request struct {
	place
	due   int64
	input *Value // of an element, told when it ends
}

// pause is a pause that a request named.
type pause struct {
	request journal.GUID
	journal.PauseRef
}

// place is an instance, or an element of its list.
type place struct {
	key     collation.InstanceKey
	element int
}

// Add takes the next entry: first those of the main chain in order, then those of the
// effect chains.
func (t *Teller) Add(e *journal.Entry) {
	if e.Chain.IsZero() {
		t.entry(e)
		return
	}
	if e.Effect == nil {
		return
	}
	at := place{instance(e.Activity, e.DAD), none}
	if r := t.requests[e.Chain]; r != nil {
		at = r.place
	}
	ev := t.event(e, KindEffect, at)
	t.effect(&ev, e)
	t.effects = append(t.effects, ev)
}

// Events returns the events in the order of time. Events of one chain stay in the chain's
// order.
func (t *Teller) Events() []Event {
	if len(t.effects) == 0 {
		return t.main
	}
	slices.SortStableFunc(t.effects, func(x, y Event) int { return x.Time.Compare(y.Time) })
	all := make([]Event, 0, len(t.main)+len(t.effects))
	effects := t.effects
	for i, ev := range t.main {
		for len(effects) > 0 &&
			(effects[0].Time.Before(ev.Time) || effects[0].Time.Equal(ev.Time) && effects[0].Chain == t.answers[i]) {
			all, effects = append(all, effects[0]), effects[1:]
		}
		all = append(all, ev)
	}
	return append(all, effects...)
}

// none is the element of a place that is no element of a list.
const none = -1

func instance(activity, dad string) collation.InstanceKey {
	return collation.InstanceKey{Activity: activity, DAD: collation.DAD(dad)}
}

func (t *Teller) event(e *journal.Entry, kind Kind, at place) Event {
	ev := Event{
		Time: moment(e.Time), Kind: kind, Activity: at.key.Activity, Address: string(at.key.DAD),
		Pass: at.key.DAD.Pass(), Element: at.element,
		Chain: e.Chain, Seq: e.Seq,
	}
	for _, m := range e.Moves() {
		if m.Activity == at.key.Activity && m.DAD == string(at.key.DAD) {
			ev.Ledger = m.After
		}
	}
	return ev
}

func (t *Teller) tell(e *journal.Entry, ev *Event) {
	var answers journal.GUID
	if e.Response != nil {
		answers = e.Response.Request
	}
	t.main, t.answers = append(t.main, *ev), append(t.answers, answers)
}

// entry tells an entry of the main chain: first what happened, then what follows.
func (t *Teller) entry(e *journal.Entry) {
	own := place{instance(e.Activity, e.DAD), none}
	switch e.Kind {
	case journal.KindCreated:
		t.created(e)
	case journal.KindStale:
		ev := t.event(e, KindLate, own)
		ev.Text = "a message came too late, and changed nothing"
		t.tell(e, &ev)
		return
	case journal.KindOperator:
		t.operator(e, own)
	case journal.KindResumed, journal.KindForked, journal.KindInterrupt:
		t.operator(e, place{element: none})
	case journal.KindDeadLetter, journal.KindQuarantine:
		t.trouble(e, own)
	case journal.KindExpired:
		ev := t.event(e, KindOther, place{element: none})
		ev.Text = "the job expired"
		t.tell(e, &ev)
	}
	if e.Response != nil {
		t.answered(e, own)
	}
	if e.Trouble != nil && e.Trouble.Reason == collation.ReasonExpression {
		t.trouble(e, own)
	}
	t.again(e)
	t.ended(e, own)
	t.ordered(e, own)
	t.closed(e)
}

func (t *Teller) created(e *journal.Entry) {
	t.job = flow.JobInfo{ID: e.Key, StartedMicros: e.Time}
	ev := t.event(e, KindStarted, place{element: none})
	if e.Flow != nil {
		t.job.Flow, t.job.Version = e.Flow.Name, e.Flow.Version
		ev.Text = fmt.Sprintf("started: flow %s version %s", e.Flow.Name, e.Flow.Version)
	}
	if p := e.Parent; p != nil {
		ev.Text += ", by " + p.Activity
		ev.Job = p.Job
	}
	if e.Operator != nil {
		ev.Text += ", by " + e.Operator.Who
	}
	if len(e.Dispatched) > 0 && e.Dispatched[0].At > 0 {
		ev.Text += ", not before " + time.UnixMicro(e.Dispatched[0].At).UTC().Format(time.DateTime) + " UTC"
	}
	if len(e.Tags) > 0 {
		ev.Text += ", tags " + strings.Join(e.Tags, ", ")
	}
	if e.From != nil {
		ev.Text += "; " + resumes(e)
		ev.Job = e.From.Job
	}
	if e.Input != nil {
		ev.Input = &Value{JSON: e.Input}
	}
	t.tell(e, &ev)
}

// says names who decided: the name that he gave, and his login at the database.
func says(o *journal.Operator) string {
	switch {
	case o.Login == "" || o.Login == o.Who:
		return o.Who
	case o.Who == "":
		return "login " + o.Login
	}
	return o.Who + " (login " + o.Login + ")"
}

// resumes says what a job resumes, or was forked from, and who decided.
func resumes(e *journal.Entry) string {
	x := e.From
	text := fmt.Sprintf("generation %d goes on with generation %d", e.Generation, x.Generation)
	if x.Forks() && x.Fork != nil {
		text = fmt.Sprintf("it goes on from entry %d of another job", x.Fork.At)
	}
	if x.Activity != "" && x.DAD == "" {
		text += " from " + x.Activity + " on"
	}
	if x.Who != "" {
		text += "; decided by " + x.Who
	}
	if x.Reason != "" {
		text += " (" + x.Reason + ")"
	}
	return text
}

func (t *Teller) operator(e *journal.Entry, own place) {
	if e.Operator == nil {
		return
	}
	if e.GUID != (journal.GUID{}) {
		if r := t.requests[e.GUID]; r != nil {
			own = r.place
		}
	}
	ev := t.event(e, KindOperator, own)
	ev.Text = e.Operator.Action
	if who := says(e.Operator); who != "" {
		ev.Text = who + ": " + ev.Text
	}
	if e.Effect != nil {
		ev.Text += " effect " + e.Effect.Name
		t.judged[verdict{e.Effect.Key, e.Time}] = e.Operator.Who
	}
	if e.Operator.Reason != "" {
		ev.Text += " (" + e.Operator.Reason + ")"
	}
	switch e.Kind {
	case journal.KindResumed:
		ev.Text += ", the next generation goes on"
		ev.Job = e.Next
	case journal.KindForked:
		ev.Text += ", from an earlier entry, as job"
		ev.Job = e.Next
	}
	t.tell(e, &ev)
}

func (t *Teller) trouble(e *journal.Entry, own place) {
	ev := t.event(e, KindParked, own)
	ev.Text = "waits for a person"
	if e.Kind == journal.KindQuarantine {
		ev.Text = "quarantined: its stored state breaks a law"
		if e.Trouble != nil && e.Trouble.Reason == collation.ReasonChanged {
			ev.Text = "quarantined: what is stored is not what was written"
		}
	}
	if e.Trouble != nil && e.Trouble.Reason == collation.ReasonExpression {
		ev.Kind, ev.Text = KindFailed, "failed: an expression of its transitions"
	}
	if e.Trouble != nil {
		ev.Error = &journal.Failure{Class: e.Trouble.Reason, Message: e.Trouble.Message}
	}
	t.tell(e, &ev)
}

func (t *Teller) closed(e *journal.Entry) {
	c := e.Close
	if c == nil || !slices.Contains(e.Marks, journal.MarkClosed) && c.Output == nil {
		return
	}
	ev := t.event(e, KindClosed, place{element: none})
	ev.Text, ev.Code, ev.Error = "the job "+string(c.State), c.Code, c.Error
	if c.State == journal.JobFailed || c.State == journal.JobInterrupted {
		ev.Text = fmt.Sprintf("the job %s with code %d", c.State, c.Code)
	}
	if c.State == journal.JobInterrupted {
		ev.Text = "the job was interrupted"
	}
	if e.Abandoned > 0 {
		ev.Text += fmt.Sprintf("; what was still open of it (%d) is abandoned", e.Abandoned)
	}
	if c.Output != nil {
		ev.Output = &Value{JSON: c.Output}
	}
	ev.Ran = span(t.job.StartedMicros, e.Time)
	if !slices.Contains(e.Marks, journal.MarkClosed) { // stepwise: another entry tells the end itself
		ev.Kind, ev.Text = KindOther, "the output of the job"
	}
	t.tell(e, &ev)
}

// span is the time between two moments of one clock; 0 if one is not known or the clock
// was set back.
func span(from, to int64) time.Duration {
	if from == 0 || to < from {
		return 0
	}
	return time.Duration(to-from) * time.Microsecond
}

// moment is the time of microseconds since 1970.
func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
