package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// teller makes the events of one job from its entries.
type teller struct {
	flow    *flow.Flow
	payload payload
	job     flow.JobInfo
	state   *state // after the entry that is told

	main, effectEvents []view.Event
	told               []view.Event   // both, in order; nil: they were not put in order yet
	answers            []journal.GUID // parallel to main: the request that the event's entry answers
	results            map[collation.InstanceKey]*flow.Result
	requests           map[journal.GUID]*request
	undo               map[journal.JobID]*request // by the id of the job that would run the compensations
	children           map[journal.JobID][]byte   // inputs of children that functions named
	begun              map[call]*journal.Effect   // effects that have a start entry
	judged             map[verdict]string         // who decided
}

// payload returns an output that is stored separately from its entry (E6), by its digest.
type payload func(journal.Digest) ([]byte, error)

// newTeller makes the teller of a job. f is the job's version of its flow; without it no inputs are
// told. Without a payload, outputs that are stored separately are not told.
func newTeller(f *flow.Flow, payload payload, s *state) *teller {
	return &teller{
		flow: f, payload: payload, state: s, results: map[collation.InstanceKey]*flow.Result{},
		requests: map[journal.GUID]*request{}, children: map[journal.JobID][]byte{},
		undo:  map[journal.JobID]*request{},
		begun: map[call]*journal.Effect{}, judged: map[verdict]string{},
	}
}

// request is a request that was sent: its place, and since when its attempt is due.
type request struct {
	place
	due   int64
	input *view.Value // of an element, told when it ends
}

// place is an instance, or an element of its list.
type place struct {
	key     collation.InstanceKey
	element int
}

// add takes the next entry: first those of the main chain in order, then those of the
// effect chains.
func (t *teller) add(e *journal.Entry) {
	if e.Chain.IsZero() {
		t.entry(e)
		return
	}
	if e.Effect == nil {
		return
	}
	at := place{instanceKey(e.Activity, e.DAD), none}
	if r := t.requests[e.Chain]; r != nil {
		at = r.place
	}
	ev := t.event(e, view.KindEffect, at)
	t.effect(&ev, e)
	t.effectEvents = append(t.effectEvents, ev)
}

// finish puts the events in order, once for all who read them.
func (t *teller) finish() { t.told = t.merged() }

// events returns the events in the order of time. Events of one chain stay in the chain's
// order.
func (t *teller) events() []view.Event {
	if t.told != nil {
		return t.told
	}
	return t.merged()
}

func (t *teller) merged() []view.Event {
	if len(t.effectEvents) == 0 {
		return t.main
	}
	slices.SortStableFunc(t.effectEvents, func(x, y view.Event) int { return x.Time.Compare(y.Time) })
	all := make([]view.Event, 0, len(t.main)+len(t.effectEvents))
	effects := t.effectEvents
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

// index is the place in the list; nil for none.
func (p place) index() *int {
	if p.element == none {
		return nil
	}
	return &p.element
}

func (t *teller) event(e *journal.Entry, kind view.Kind, at place) view.Event {
	ev := view.Event{
		Time: moment(e.Time), Kind: kind, Activity: at.key.Activity, Address: string(at.key.DAD),
		Pass: at.key.DAD.Pass(), Element: at.index(),
		Chain: e.Chain, Entry: e.Seq,
	}
	for _, m := range e.Moves() {
		if m.Activity == at.key.Activity && m.DAD == string(at.key.DAD) {
			ev.Ledger = m.After
		}
	}
	return ev
}

func (t *teller) tell(e *journal.Entry, ev *view.Event) {
	var answers journal.GUID
	if e.Response != nil {
		answers = e.Response.Request
	}
	t.main, t.answers = append(t.main, *ev), append(t.answers, answers)
}

// entry tells an entry of the main chain: first what happened, then what follows.
func (t *teller) entry(e *journal.Entry) {
	own := place{instanceKey(e.Activity, e.DAD), none}
	switch e.Kind {
	case journal.KindCreated:
		t.created(e)
	case journal.KindStale:
		ev := t.event(e, view.KindLate, own)
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
		ev := t.event(e, view.KindOther, place{element: none})
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

func (t *teller) created(e *journal.Entry) {
	t.job = flow.JobInfo{ID: e.Key, StartedMicros: e.Time}
	ev := t.event(e, view.KindStarted, place{element: none})
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
		ev.Input = &view.Value{JSON: e.Input}
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

func (t *teller) operator(e *journal.Entry, own place) {
	if e.Operator == nil {
		return
	}
	if e.GUID != (journal.GUID{}) {
		if r := t.requests[e.GUID]; r != nil {
			own = r.place
		}
	}
	ev := t.event(e, view.KindOperator, own)
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

func (t *teller) trouble(e *journal.Entry, own place) {
	ev := t.event(e, view.KindParked, own)
	ev.Text = "waits for a person"
	if e.Kind == journal.KindQuarantine {
		ev.Text = "quarantined: its stored state breaks a law"
		if e.Trouble != nil && e.Trouble.Reason == collation.ReasonChanged {
			ev.Text = "quarantined: what is stored is not what was written"
		}
	}
	if e.Trouble != nil && e.Trouble.Reason == collation.ReasonExpression {
		ev.Kind, ev.Text = view.KindFailed, "failed: an expression of its transitions"
	}
	if e.Trouble != nil {
		ev.Error = &view.Failure{Class: e.Trouble.Reason, Message: e.Trouble.Message}
	}
	t.tell(e, &ev)
}

func (t *teller) closed(e *journal.Entry) {
	c := e.Close
	if c == nil || !slices.Contains(e.Marks, journal.MarkClosed) && c.Output == nil {
		return
	}
	ev := t.event(e, view.KindClosed, place{element: none})
	ev.Text, ev.Code, ev.Error = "the job "+string(c.State), c.Code, view.FailureOf(c.Error)
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
		ev.Output = &view.Value{JSON: c.Output}
	}
	ev.Ran = span(t.job.StartedMicros, e.Time)
	if !slices.Contains(e.Marks, journal.MarkClosed) { // stepwise: another entry tells the end itself
		ev.Kind, ev.Text = view.KindOther, "the output of the job"
	}
	t.tell(e, &ev)
}

// span is the time between two moments of one clock; 0 if one is not known or the clock
// was set back.
func span(from, to int64) view.Duration {
	if from == 0 || to < from {
		return 0
	}
	return view.Duration(time.Duration(to-from) * time.Microsecond)
}
