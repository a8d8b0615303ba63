package explain

import (
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// maxPauses bounds the pauses that a sentence names.
const maxPauses = 8

// wakeOf reads the response in a wake of a durable function; nil for any other row (E12).
func wakeOf(r *collation.Row) *journal.Response {
	if r.Kind != journal.MessageWakeUp && r.Kind != journal.MessageOutcome {
		return nil
	}
	x, err := journal.DecodeResponse(r.Body)
	if err != nil || x.Request.IsZero() {
		return nil
	}
	return x
}

func wakes(r *collation.Row) bool { return wakeOf(r) != nil }

// function says that a durable function answers the request: it has suspended before.
func function(r *collation.Row) bool { return len(r.Pauses) > 0 }

// asked names the instance of a request in a sentence, and the kind of its handler.
func (e *explainer) asked(s *spot, r *collation.Row) string {
	switch {
	case e.undoes():
		p := e.v.Parent
		of := p.Activity
		if e.Addresses {
			of += " at " + p.DAD
		}
		return fmt.Sprintf("%s (compensations of %s of job %s)", s.name(), of, e.jobName(p.Job))
	case function(r):
		return s.name() + " (function)"
	}
	return s.name()
}

// undoes says that the job runs the compensations of a function that something else ended
// (3.5).
func (e *explainer) undoes() bool {
	p := e.v.Parent
	return p != nil && p.Turn == 0 && !p.Awaited
}

// jobName is the key of a job, or its id if it cannot be looked up.
func (e *explainer) jobName(id journal.JobID) string {
	if e.Find != nil {
		if j := e.Find(id); j != nil {
			return fmt.Sprintf("%q", j.Key)
		}
	}
	return id.String()
}

// suspended explains the request of a suspended function by all its pauses.
func (e *explainer) suspended(s *spot, r *collation.Row) {
	if !function(r) {
		e.add(s, KindSuspended, s.name(), " is suspended: its handler goes on when what it waits for comes", e.bound(s, r))
		return
	}
	var parts []string
	var commands []string
	next := collation.Never
	for i := range r.Pauses {
		p := &r.Pauses[i]
		text, due := e.pause(s, p)
		if due != collation.Never && (next == collation.Never || due < next) {
			next = due
		}
		if w := e.waits[p.GUID]; w != nil {
			commands = append(commands, "quipu signal "+word(w.Topic)+" "+word(w.Key)+" PAYLOAD")
		}
		if len(parts) < maxPauses {
			parts = append(parts, text)
		}
	}
	if more := len(r.Pauses) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	does := "is suspended in turn %d: it waits for %s"
	if _, _, is := r.Pauses[0].Undo(); is {
		does = "undoes what it did, turn %d: %s"
	}
	x := e.add(s, KindSuspended, e.asked(s, r)+" "+fmt.Sprintf(does, r.Turn-1, listed(parts))+e.bound(s, r))
	x.Due = next
	x.do("", commands[:min(len(commands), maxPauses)]...)
}

// pause describes one pause of a function, and says when the clock ends it, Never if it
// does not.
func (e *explainer) pause(s *spot, p *collation.Pause) (text string, due collation.Micros) {
	switch {
	case p.Came:
		return fmt.Sprintf("%s %q, which has come", p.Kind, p.Name), collation.Never
	case p.Taken:
		return fmt.Sprintf("%s %q, which is being handled", p.Kind, p.Name), collation.Never
	case p.Kind == journal.PauseSleep:
		if r := e.rows[p.GUID]; r != nil {
			if name, failures, is := p.Undo(); is {
				what := fmt.Sprintf("compensation %q", name)
				if name == "" {
					what = "the run for its compensations"
				}
				return fmt.Sprintf("%s has failed %s and runs again %s; the log of its worker says why", what, counted(failures, "time"), e.in(r.NextAt)), r.NextAt
			}
			return fmt.Sprintf("timer %q, due %s", p.Name, e.in(r.NextAt)), r.NextAt
		}
	case p.Kind == journal.PauseSignal:
		return e.signalled(p)
	case p.Kind == journal.PauseChild:
		return e.started(p), collation.Never
	}
	return fmt.Sprintf("%s %q, of which nothing stands", p.Kind, p.Name), collation.Never
}

// signalled describes a signal that a function waits for, with its timeout.
func (e *explainer) signalled(p *collation.Pause) (text string, due collation.Micros) {
	w := e.waits[p.GUID]
	if w == nil {
		return fmt.Sprintf("signal %q, which is on its way", p.Name), collation.Never
	}
	text = fmt.Sprintf("signal %s with key %q", w.Topic, w.Key)
	if p.Name != w.Topic {
		text += fmt.Sprintf(" (%q)", p.Name)
	}
	if r := e.rows[collation.TimeoutGUID(p.GUID)]; p.Timeout && r != nil {
		return text + ", at most until " + e.clock(r.NextAt), r.NextAt
	}
	return text, collation.Never
}

// started describes a child that a function waits for.
func (e *explainer) started(p *collation.Pause) string {
	text := fmt.Sprintf("child %q", p.Name)
	id := journal.JobID(p.GUID)
	if r := e.rows[p.GUID]; r != nil {
		if o, err := r.Order(); err == nil {
			text += fmt.Sprintf(" (job %q of flow %s)", o.Key, o.Flow)
		}
		return text + ", which has not begun"
	}
	if e.Find == nil {
		return text + " (job " + id.String() + ")"
	}
	c := e.Find(id)
	if c == nil {
		return text + " (job " + id.String() + "), which is not known here"
	}
	return fmt.Sprintf("%s (job %q), which is %s", text, c.Key, c.State)
}

// came describes a wake that is on its way to the engines.
func (e *explainer) came(s *spot, r *collation.Row, x *journal.Response) string {
	name := s.name() + " (function)"
	request := e.rows[x.Request]
	if request == nil {
		return name + " has a wake for a request that has ended"
	}
	for i := range request.Pauses {
		p := &request.Pauses[i]
		switch {
		case p.Kind == journal.PauseChild:
			if x.Child.Start() == p.GUID {
				return fmt.Sprintf("%s has the outcome of its child %q", name, p.Name)
			}
		case r.GUID == p.GUID && p.Kind == journal.PauseSleep:
			return fmt.Sprintf("%s was woken by its timer %q", name, p.Name)
		case r.GUID == p.GUID:
			return fmt.Sprintf("%s was woken by its signal %q", name, p.Name)
		case p.Timeout && r.GUID == collation.TimeoutGUID(p.GUID):
			return fmt.Sprintf("%s waited in vain for its signal %q", name, p.Name)
		}
	}
	return name + " has a wake that it does not wait for any more"
}

// listed joins parts as in a sentence.
func listed(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + ", and " + parts[len(parts)-1]
}

// compensated names the jobs that run compensations because of the close of this job.
func (e *explainer) compensated() string {
	if e.Last == nil {
		return ""
	}
	var names []string
	for i := range e.Last.Dispatched {
		d := &e.Last.Dispatched[i]
		if d.Kind != journal.MessageStart || d.Job.IsZero() {
			continue
		}
		name := "job " + e.jobName(d.Job)
		if e.Find != nil {
			if j := e.Find(d.Job); j != nil {
				name += fmt.Sprintf(", which is %s", j.State)
			}
		}
		if names = append(names, name); len(names) == maxPauses {
			break
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "compensations are run by " + listed(names)
}
