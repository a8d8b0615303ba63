package collation

// A job that resumes another goes through its flow from the trigger on, without repeating what
// earlier generations did. If one of them has the result of an instance, an element, a pause or
// a child, that is the answer here. The same holds for effects (Chain.takeOver). Each copy
// names the entry that it comes from.
//
// A fork does the same with the results that another job had at one of its entries. Of effects it
// takes nothing over: its own have other keys.

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Past is what an earlier generation, or the job that a fork goes on from, has of an instance or
// an element.
type Past struct {
	Generation int64
	Forked     bool          // it is of the job that the fork goes on from
	From       *journal.From // what that generation resumes; nil: nothing
	Seq        int64         // of the entry that holds the result; 0: it has none
	Result     *flow.Result
}

// PauseKey names a pause of a function in every generation of a job.
type PauseKey struct {
	InstanceKey
	Element int
	journal.PauseRef
}

// PastPause is what an earlier generation, or the job that a fork goes on from, recorded of a
// pause.
type PastPause struct {
	Generation, Seq int64
	Forked          bool // it is of the job that the fork goes on from
	Response        *journal.Response
}

// End is the outcome of a child's last generation, which has completed.
type End struct {
	Job             journal.JobID
	Generation, Seq int64
	Output          []byte
}

// result makes a result of the copy.
func (p *Past) result() *journal.Result {
	r := &journal.Result{
		Code: p.Result.Code, Output: p.Result.Output, By: journal.By(p.Result.By),
		Taken: &journal.Taken{Generation: p.Generation, Seq: p.Seq, Forked: p.Forked},
	}
	if p.Result.Error != nil {
		r.Error = FailureOf(p.Result.Error)
	}
	return r
}

// response makes an answer of the copy.
func (p *Past) response() *journal.Response {
	r := p.result()
	return &journal.Response{
		Kind: journal.ResponseTerminal, Code: r.Code, Output: r.Output, Error: r.Error, By: r.By, Taken: r.Taken,
	}
}

func (e *End) response() *journal.Response {
	return &journal.Response{
		Kind: journal.ResponseTerminal, Code: CodeOK, Output: e.Output,
		Taken: &journal.Taken{Generation: e.Generation, Chain: journal.GUID(e.Job), Seq: e.Seq},
	}
}

// Resumed makes the entry that a key's last generation gets with the inception of the next one.
// It names the next job, and who decided and why. Nothing else of the job changes.
func Resumed(s *State, next journal.JobID, who, reason string, mode Mode) *Plan {
	w := newWriter(s, &Message{Job: s.Job.ID}, mode)
	e := w.entry(journal.KindResumed)
	e.Next, e.Operator = next, &journal.Operator{Action: ActionResume, Who: who, Reason: reason, Login: mode.Login}
	w.p.Done, w.p.Next = true, next
	return w.seal()
}

// Forked makes the entry that a job gets when another one begins from an earlier entry of it. It
// names that job, and who decided and why. Nothing else of the job changes, and it may be open.
func Forked(s *State, next journal.JobID, who, reason string, mode Mode) *Plan {
	w := newWriter(s, &Message{Job: s.Job.ID}, mode)
	e := w.entry(journal.KindForked)
	e.Next, e.Operator = next, &journal.Operator{Action: ActionFork, Who: who, Reason: reason, Login: mode.Login}
	w.p.Done = true
	return w.seal()
}

// Resume decides that a job goes on from s, the last one of its key, and gives in its generation and
// From. The plan is the last of s; when it is applied, and its entry has a hash, call GoOn. Error:
// ErrStale: the key has a later job, or s neither failed nor was interrupted.
func Resume(s *State, held *Holder, in *Inception, from journal.From, mode Mode) (*Plan, error) {
	switch {
	case held.ID != s.Job.ID:
		return nil, fmt.Errorf("%w: generation %d of the key is there", ErrStale, held.Generation)
	case s.Job.State != journal.JobFailed && s.Job.State != journal.JobInterrupted:
		return nil, fmt.Errorf("%w: the job is %s", ErrStale, s.Job.State)
	}
	in.Generation, in.From = held.Next(), &from
	from.Root, from.RootGeneration = s.Job.Root()
	if was := s.Job.From; was != nil {
		from.Fork = was.Fork
	}
	return Resumed(s, NewJobID(in.Space, in.Key, in.Generation), from.Who, from.Reason, mode), nil
}

// Fork decides that a job goes on from an entry of s under a key that is free, and gives in its
// generation and From. The plan is an entry of s; when it is applied, and its entry has a hash, call
// GoOn. Error: ErrStale: s is quarantined.
func Fork(s *State, held *Holder, in *Inception, from journal.From, mode Mode) (*Plan, error) {
	if s.Job.State == journal.JobQuarantined {
		return nil, fmt.Errorf("%w: the job is quarantined", ErrStale)
	}
	cut := *from.Fork
	cut.Job, cut.Generation = s.Job.ID, s.Job.Generation
	in.Generation, in.From, from.Fork = held.Next(), &from, &cut
	return Forked(s, NewJobID(in.Space, in.Key, in.Generation), from.Who, from.Reason, mode), nil
}

// GoOn names in From the head of the job that a resuming job, or a fork, goes on from.
func (in *Inception) GoOn(s *State) {
	in.From.Generation, in.From.Head = s.Job.Generation, s.Job.Head
}

// past is the result of an instance or element in an earlier generation, if it is to be taken
// over. nil: the job resumes none, or the instance is done again.
func (b *builder) past(key InstanceKey) (*Past, error) {
	from := b.s.Job.From
	name, _, element := strings.Cut(key.Activity, "[")
	act, _ := b.s.Flow.Activity(name)
	if from == nil || act.Repeat { // each signal made a pass, so there is no single result
		return nil, nil
	}
	all, err := read(b, b.s.Past, key, &b.need.Past)
	if err != nil {
		return nil, err
	}
	chosen := []*journal.From{from}
	for i := range all {
		p := &all[i]
		if p.Seq > 0 {
			for _, f := range chosen {
				if Again(b.s.Flow, f, act, key.DAD, p.Result.Code, element) {
					return nil, nil
				}
			}
			return p, nil
		}
		if p.From != nil {
			chosen = append(chosen, p.From)
		}
	}
	return nil, nil
}

// Again reports whether a resuming job does an instance, or an element of it, again although it
// has a result with the code. Elements of the failed instance that succeeded are kept. A child
// that has completed is never started again.
func Again(f *flow.Flow, from *journal.From, act *flow.Activity, dad DAD, code int, element bool) bool {
	switch {
	case from.Activity == "" || act.Type == flow.TypeAwait && code == CodeOK:
		return false
	case from.DAD != "":
		return act.Name == from.Activity && string(dad) == from.DAD && !(element && code == CodeOK)
	}
	return f.Follows(act.Name, from.Activity)
}

// pastChild is how a child ended that an earlier generation waited for in vain and that has
// completed since; nil: there is none. Error: *goneError.
func (b *builder) pastChild(key InstanceKey, element int, of *journal.PauseRef) (*End, error) {
	if b.s.Job.From == nil {
		return nil, nil
	}
	for i := range b.s.Job.From.Children {
		x := &b.s.Job.From.Children[i]
		same := x.Activity == key.Activity && x.DAD == string(key.DAD) && x.Element == element
		if !same || (x.Of == nil) != (of == nil) || of != nil && *x.Of != *of {
			continue
		}
		end, err := read(b, b.s.Ends, x.Job, &b.need.Ends)
		if end == nil && err == nil {
			err = &goneError{x.Job}
		}
		return end, err
	}
	return nil, nil
}

// goneError says that a child has expired before its outcome was taken. It is not started
// again, because its work would be done twice.
type goneError struct{ child journal.JobID }

func (e *goneError) Error() string {
	return "job " + e.child.String() + ", whose outcome was to be taken over, has expired"
}

// pastPause makes a pause come at once if it came in an earlier generation: a sleep, a signal,
// a child that succeeded then or has completed since. A wait that ended at its bound is
// registered again, because the signal may have come by now.
func (b *builder) pastPause(row *Row, p *Pause) (done bool, err error) {
	if b.s.Job.From == nil {
		return false, nil
	}
	key := InstanceKey{row.Activity, row.DAD}
	was, err := read(b, b.s.PastPauses, PauseKey{key, row.Element, p.PauseRef}, &b.need.Pauses)
	if err != nil {
		return false, err
	}
	var r *journal.Response
	switch {
	case was != nil &&
		(p.Kind == journal.PauseSleep || p.Kind == journal.PauseSignal && was.Response.By == journal.BySignal ||
			p.Kind == journal.PauseChild && was.Response.Code == CodeOK):
		r = was.copy()
	case p.Kind == journal.PauseChild:
		end, err := b.pastChild(key, row.Element, &p.PauseRef)
		if gone := (*goneError)(nil); errors.As(err, &gone) {
			return false, errBroken(gone.Error()) // a made-up answer would not be the function's
		}
		if end == nil || err != nil {
			return false, err
		}
		r = end.response()
	default:
		return false, nil
	}
	r.Kind, r.Request = journal.ResponseWake, row.GUID
	if p.Kind == journal.PauseChild {
		r.Child = journal.JobID(p.GUID)
	}
	b.timer(Row{GUID: p.GUID, Kind: journal.MessageWakeUp, NextAt: b.s.Now, Body: journal.EncodeResponse(r)}, b.key)
	return true, nil
}

// copy is the recorded response, with the entry that it comes from.
func (p *PastPause) copy() *journal.Response {
	r := *p.Response
	r.Of, r.Taken = nil, &journal.Taken{Generation: p.Generation, Seq: p.Seq, Forked: p.Forked}
	return &r
}

// FailureUndone is the error class of an effect that is not taken over because its compensation
// has run.
const FailureUndone = "undone"

// PastEffect is an effect as an earlier generation left it.
type PastEffect struct {
	Effect
	Generation int64
	// Undone says that the compensations of its function have run or will run, in a job of their
	// own or in the function itself. Undoing says that such a job is still open.
	Undone, Undoing bool
}

// takeOver begins an effect that an earlier generation has. A result is copied. An error, or an
// effect whose compensation has run, is recorded as not done, so that it runs again under the
// next key (E5). One of unknown outcome counts as taken over by this run (E4). ErrLeased: its
// call or its compensation may be under way.
func (c *Chain) takeOver(p *PastEffect, l Lease, e journal.Effect, mode Mode) (Effected, error) {
	started := p.State == EffectStarted && !p.Undone
	if p.Undoing || started && p.Until > c.Now {
		return Effected{}, ErrLeased
	}
	row := *c.Row
	row.hold(&l)
	w := &ChainWrite{Request: c.Request, Row: &row, Effect: c.first(&e)}
	kind, f := journal.KindEffectFailed, &w.Effect
	f.State, f.Class, f.Fence, f.Holder, f.Turn, f.Until = EffectNotDone, p.Class, l.Fence, l.Holder, l.Turn, Never
	switch {
	case p.Undone:
		f.Error = &journal.Failure{Class: FailureUndone, Message: "its compensation has run"}
	case started:
		kind, f.State, f.Live = journal.KindEffectStarted, EffectStarted, true
		f.Until = mode.CallEnds(f.Class, l.Timeout, c.Now)
		row.Undo = row.Undo || p.Class == ClassUndo
	case p.State == EffectCompleted && p.Error == nil:
		kind, f.State, f.Result, f.Vouched = journal.KindEffectCompleted, EffectCompleted, p.Result, p.Vouched
	default:
		f.Error = p.Error
	}
	e.Class, e.Turn, e.Fence, e.Late, e.Result, e.Error = f.Class, l.Turn, l.Fence, false, f.Result, f.Error
	e.Taken = &journal.Taken{Generation: p.Generation, Chain: p.Request, Seq: p.Seq}
	c.record(w, kind, l.Holder, &e, mode)
	out := Effected{Plan: c.move(w), EffectRow: f.EffectRow, Taken: started && p.Class != ClassUndo}
	out.Plan.Session = l.Session
	return out, nil
}
