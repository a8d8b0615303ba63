package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// nature says what woke a hook, or gives the class of an answer's error.
func nature(r *collation.Row) (by journal.By, class string) {
	switch r.Kind {
	case journal.MessageWakeUp:
		if x, err := journal.DecodeResponse(r.Body); err == nil {
			by = x.By
		}
	case journal.MessageAnswer:
		if x, err := journal.DecodeResponse(r.Body); err == nil && x.Error != nil {
			class = x.Error.Class
		}
	}
	return by, class
}

// explain gives the reasons of one instance: its messages that are under way, and
// otherwise what it waits for.
func (e *explainer) explain(s *spot) {
	moving := slices.Clone(s.rows)
	for _, r := range append([]*collation.Row{s.timer, s.bound}, s.alarms...) {
		if r != nil && (e.due(r) || r.Held != "") {
			moving = append(moving, r)
		}
	}
	for _, r := range moving {
		e.message(s, r)
	}
	switch {
	case len(s.requests) > 1 || len(s.requests) == 1 && s.inst.Count > 0:
		e.each(s)
	case len(s.requests) == 1:
		e.request(s, s.requests[0])
	case s.inst.Ledger.Finalized():
	case s.wait != nil && s.wait.Repeat: // also while a pass is under way
		e.hook(s)
	case len(moving) > 0:
	case s.wait != nil || s.timer != nil:
		e.hook(s)
	case !s.inst.Child.IsZero():
		e.child(s)
	case s.act != nil && s.act.Join != "" && s.inst.Ledger.Leg1Entries() == 0:
		e.join(s)
	}
}

// due says that the time of a row has come.
func (e *explainer) due(r *collation.Row) bool {
	return r.Publication > 0 || r.NextAt != collation.Never && r.NextAt <= e.Now
}

// sent says that this turn of the row was published.
func sent(r *collation.Row) bool { return r.Publication > 0 && r.TurnSent == r.Turn }

// name is the instance in a sentence.
func (s *spot) name() string { return s.Activity + s.place }

// named is the instance of a key in a sentence, also one of which nothing is open.
func (e *explainer) named(activity string, dad collation.DAD) string {
	if s := e.by[collation.InstanceKey{Activity: activity, DAD: dad}]; s != nil {
		return s.name()
	}
	if e.Addresses {
		return activity + " at " + string(dad)
	}
	return activity
}

// message explains a row whose message is on its way to the engines.
func (e *explainer) message(s *spot, r *collation.Row) {
	switch {
	case e.person(s, r):
		return
	case r.Kind == journal.MessageStart && r.Publication == 0 && r.NextAt > e.Now:
		e.add(s, KindTimer, "the job starts ", e.in(r.NextAt)).Due = r.NextAt
		return
	}
	what := e.what(s, r)
	kind := KindEngine
	if r.Kind == journal.MessageInterrupt {
		kind = KindInterrupt
	}
	if !sent(r) && kind == KindEngine {
		kind = KindUnsent
	}
	e.add(s, kind, what, "; the message ", e.way(r)).Due = r.NextAt
}

// refused says that the bus may not have taken the last message of a row.
func refused(r *collation.Row) bool { return r.Publication > 0 && r.TurnSent == collation.NoTurn }

// trouble is what keeps the messages of a queue from their way: of a topic, or of the whole stream; ""
// if no process tells of any.
func (e *explainer) trouble(queue string) string {
	stream, _, _ := strings.Cut(queue, ".")
	found := ""
	for i := range e.Wrong {
		switch f := &e.Wrong[i]; f.Queue {
		case queue:
			return f.Text
		case stream:
			found = f.Text
		}
	}
	return found
}

// queue is the one that the message of a row goes by.
func queue(r *collation.Row) string {
	switch r.Kind {
	case journal.MessageRequest:
		return "work." + r.Topic
	case journal.MessageStart:
		return "start"
	default:
		return "lane"
	}
}

// way says how far the message of a row is.
func (e *explainer) way(r *collation.Row) string {
	if refused(r) {
		if why := e.trouble(queue(r)); why != "" {
			return "could not be published: " + why + "; it is tried again " + e.in(r.NextAt)
		}
		return "could not be published, or it is not known whether it was; it is tried again " + e.in(r.NextAt)
	}
	if !sent(r) {
		return "was not published yet, an engine does that"
	}
	return "went to the engines " + e.ago(r.PublishedAt) + " and is " + e.again(r) + e.hindered(r)
}

// hindered adds to a message that was published what keeps those of its queue from their way.
func (e *explainer) hindered(r *collation.Row) string {
	if why := e.trouble(queue(r)); why != "" {
		return "; but " + why
	}
	return ""
}

// again says when a published row is looked at again.
func (e *explainer) again(r *collation.Row) string {
	if r.NextAt == collation.Never {
		return "not looked for by itself"
	}
	return "looked for again " + e.in(r.NextAt)
}

// what describes a message.
func (e *explainer) what(s *spot, r *collation.Row) string {
	switch r.Kind {
	case journal.MessageStart:
		return "the job has begun, and its first activities are not dispatched"
	case journal.MessageLeg1:
		if n := s.inst.Ledger.Leg1Entries(); n > 0 {
			return fmt.Sprintf("%s was entered %s without completing its work, and is entered again", s.name(), counted(n, "time"))
		}
		return s.name() + " is entered next"
	case journal.MessageAnswer:
		if _, class := nature(r); class == "within" {
			return s.name() + " was not ended within its time, and gets error 408"
		}
		return s.name() + " has its answer"
	case journal.MessageWakeUp, journal.MessageOutcome:
		if x := wakeOf(r); x != nil {
			return e.came(s, r, x)
		}
		if r.Kind == journal.MessageOutcome {
			return s.name() + " has the outcome of its child"
		}
		by, _ := nature(r)
		return fmt.Sprintf("%s was woken by its %s", s.name(), by)
	case journal.MessageCycle:
		return fmt.Sprintf("%s is sent into its next pass by %s", s.name(), r.Topic)
	case journal.MessageInterrupt:
		return "the job is interrupted next, " + order(r)
	}
	return fmt.Sprintf("%s gets a message of kind %s", s.name(), r.Kind)
}

// order says who interrupts, and why.
func order(r *collation.Row) string {
	o := collation.InterruptOrder{}
	if json.Unmarshal(r.Body, &o) != nil {
		return "by a message that cannot be read"
	}
	return fmt.Sprintf("by %s with code %d (%s)", o.From, o.Code, o.Reason)
}

// request explains the only request of an instance.
func (e *explainer) request(s *spot, r *collation.Row) {
	switch {
	case e.person(s, r):
	case r.Kind == journal.MessageAnswer:
		e.message(s, r)
	case r.Holder != "":
		e.runs(s, r, KindLease, fmt.Sprintf("%s is with %s, sent %s", e.asked(s, r), r.Holder, e.ago(r.PublishedAt)), e.heard(r.Holder))
	case r.NextAt == collation.Never:
		e.suspended(s, r)
	case e.cut(r) != nil:
		e.cutOff(s, r, e.cut(r))
	case sent(r):
		e.runs(s, r, KindWorker, fmt.Sprintf("%s was sent to %s %s", e.asked(s, r), r.Topic, e.ago(r.PublishedAt)),
			"it waits for the response, and is "+e.again(r), e.quiet(r.PublishedAt, r.Topic), e.hindered(r)).note(e.outside(r.Topic))
	case r.NextAt > e.Now && r.Attempt > 1 && !refused(r):
		e.add(s, KindRetry, fmt.Sprintf("%s failed and is tried again %s, %s%s", e.asked(s, r), e.in(r.NextAt), s.attempt(r), e.bound(s, r))).Due = r.NextAt
	default:
		e.runs(s, r, KindUnsent, fmt.Sprintf("%s is due for %s %s", e.asked(s, r), r.Topic, e.in(r.NextAt)),
			"the message "+e.way(r)).Due = r.NextAt
	}
}

// ManyLost is from how many lost runs of an attempt on a handler is taken for one that may end its process
// (E9).
const ManyLost = 2

// runs tells of a request: where it is, its attempt, and what comes next. The runs of it that were lost
// (E9) come before what comes next: a handler that ends its process does so again, and takes others with
// it, until its runs are used up.
func (e *explainer) runs(s *spot, r *collation.Row, kind Kind, where string, next ...string) *reason {
	where += ", " + s.attempt(r)
	then := strings.Join(next, "") + e.bound(s, r)
	lost := r.Lost()
	if lost <= 0 {
		return e.add(s, kind, where, "; ", then)
	}
	x := e.add(s, kind, where, "; ", counted(lost, "run"), " of it ended without an answer, with the process or its connection")
	if lost >= ManyLost {
		x.do("if the handler of "+r.Topic+" ends its process, run one that is mended; otherwise end this job", e.interrupt())
	}
	x.note(then)
	x.note(fmt.Sprintf("after %d such runs it waits for a person", collation.MaxRuns))
	return x
}

// cut is the effect that keeps a request from its next run; nil for none.
func (e *explainer) cut(r *collation.Row) *store.Awaited {
	at := slices.IndexFunc(e.Cut, func(x store.Awaited) bool { return x.Request == r.GUID && x.Due > e.Now })
	if at < 0 {
		return nil
	}
	return &e.Cut[at]
}

// cutOff says that a run has left an effect open which may still be under way, and what comes after that (E4).
func (e *explainer) cutOff(s *spot, r *collation.Row, x *store.Awaited) {
	then := "then it is called again"
	if x.Class == store.ClassGuarded {
		then = "its verifier is asked then, and without one it waits for a person"
	}
	e.runs(s, r, KindEffect, fmt.Sprintf("%s: effect %s was cut off with %s", e.asked(s, r), x.Topic, x.Holder),
		fmt.Sprintf("its outcome is decided %s (%s)", e.in(x.Due), then)).Due = x.Due
}

// quietAfter is how long a sent request without a lease is not suspicious. A handler
// without effects takes no lease.
const quietAfter = collation.Micros(30e6)

// quiet names the usual reason why nobody answers a request.
func (e *explainer) quiet(sent collation.Micros, topic string) string {
	if sent == collation.Never || e.Now-sent < quietAfter || e.Processes != nil {
		return ""
	}
	return "; if that is long for it, look whether a worker of " + topic + " runs"
}

// attempt is the attempt and the policy's limit, and the turn of a function that
// suspended before.
func (s *spot) attempt(r *collation.Row) string {
	turn := ""
	if r.Turn > r.Attempt {
		turn = fmt.Sprintf("turn %d, ", r.Turn)
	}
	if s.act == nil || s.act.Type != flow.TypeWorker {
		return fmt.Sprintf("%sattempt %d", turn, r.Attempt)
	}
	return fmt.Sprintf("%sattempt %d of %d", turn, r.Attempt, s.act.Retry.Attempts)
}

// bound is the part of a sentence about `within`. A request has its time in its row; a
// hook or an await has a row for it.
func (e *explainer) bound(s *spot, r *collation.Row) string {
	at := collation.Never
	switch {
	case r != nil:
		at = r.WithinAt
	case s.bound != nil:
		at = s.bound.NextAt
	}
	if at == collation.Never {
		return ""
	}
	return "; without an end it gets error 408 " + e.in(at)
}

// hook explains what a hook waits for.
func (e *explainer) hook(s *spot) {
	var signal, passes string
	if w := s.wait; w != nil {
		signal = fmt.Sprintf("waits for signal %s with key %q", w.Topic, w.Key)
		if w.Repeat {
			passes = fmt.Sprintf("%s so far, one with code 200 ends it", counted(w.Count, "signal"))
		}
	}
	var r *reason
	switch {
	case s.timer == nil:
		r = e.add(s, KindSignal, s.name(), " ", signal, ", since ", e.clock(s.wait.Since), e.bound(s, nil))
	case s.wait == nil:
		r = e.add(s, KindTimer, s.name(), " sleeps and wakes ", e.in(s.timer.NextAt), e.bound(s, nil))
	default:
		r = e.add(s, KindRace, s.name(), " ", signal, " or for its timer, which goes off ", e.in(s.timer.NextAt), e.bound(s, nil))
	}
	if s.timer != nil {
		r.Due = s.timer.NextAt
	}
	if w := s.wait; w != nil {
		r.do("", "quipu signal "+word(w.Topic)+" "+word(w.Key)+" PAYLOAD").note(passes)
		r.note(e.circle(w.Key))
	}
}

// circle says that the key of a signal is that of the job which waits for this one: who sends it there may wait
// for this job first. "" if it is not.
func (e *explainer) circle(key string) string {
	p := e.v.Parent
	if p == nil || !p.Awaited || e.Find == nil {
		return ""
	}
	if j := e.Find(p.Job); j == nil || j.Key != key {
		return ""
	}
	return fmt.Sprintf("job %q waits for this job: if it is to send the signal, each waits for the other", key)
}

// child explains an await by the child that it waits for.
func (e *explainer) child(s *spot) {
	in := s.inst
	attempt := ""
	if s.act != nil && s.act.Retry.Attempts > 1 {
		attempt = fmt.Sprintf(", attempt %d of %d", in.Attempt, s.act.Retry.Attempts)
	}
	if s.order != nil {
		e.ordered(s, attempt)
		return
	}
	name, standing := "job "+in.Child.String(), "which is not known here"
	if e.Find == nil {
		standing = ""
	} else if c := e.Find(in.Child); c != nil {
		name = fmt.Sprintf("job %q", c.Key)
		standing = "which is " + string(c.State)
		if c.State.Closed() {
			standing += "; its outcome is on its way"
		}
	}
	does := "waits for"
	if s.act != nil && !s.act.Awaited {
		does = "waits for the beginning of"
	}
	text := fmt.Sprintf("%s %s %s", s.name(), does, name)
	if standing != "" {
		text += ", " + standing
	}
	e.add(s, KindChild, text, attempt, e.bound(s, nil))
}

// ordered explains an await whose child has not yet begun.
func (e *explainer) ordered(s *spot, attempt string) {
	r := s.order
	name := "job " + r.Job.String()
	if o, err := r.Order(); err == nil {
		name = fmt.Sprintf("job %q of flow %s", o.Key, o.Flow)
	}
	switch {
	case e.person(s, r):
	case r.NextAt > e.Now && r.Publication == 0:
		e.add(s, KindRetry, fmt.Sprintf("%s: its child failed; the next, %s, is started %s%s%s",
			s.name(), name, e.in(r.NextAt), attempt, e.bound(s, nil))).Due = r.NextAt
	default:
		kind := KindChild
		if !sent(r) {
			kind = KindUnsent
		}
		e.add(s, kind, s.name(), " starts ", name, attempt, "; the message ", e.way(r), e.bound(s, nil)).Due = r.NextAt
	}
}
