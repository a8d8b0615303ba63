package collation

// A durable function suspends itself and is woken by what it waits for. It reads the row of its
// request with the pauses. It decides whether a wake-up is still expected, and whether the
// request is sent again. It writes that row, and the timers, waits and children of new pauses.

import (
	"slices"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// wakes reports whether the message brings what a durable function waits for: a wake-up or an
// outcome that is addressed to a worker (E12).
func (b *builder) wakes() bool {
	return b.act.Type == flow.TypeWorker && (b.m.Kind == journal.MessageWakeUp || b.m.Kind == journal.MessageOutcome)
}

// asking is the row of the request whose function the message wakes, as the plan has left it so
// far. nil: the request has its final answer.
func (b *builder) asking(request journal.GUID) (*Row, error) {
	for i := range b.changed {
		if row := &b.changed[i].row; row.GUID == request {
			return row, nil
		}
	}
	return b.stands(RowKey{b.m.Job, request})
}

// pauseOf finds the pause that the message ends, −1 for none. timeout: it is the pause's bound.
func (b *builder) pauseOf(row *Row) (at int, timeout bool) {
	for i := range row.Pauses {
		switch p := &row.Pauses[i]; {
		case p.Kind == journal.PauseChild && b.m.Kind == journal.MessageOutcome:
			if b.m.Response.Child.Start() == p.GUID {
				return i, false
			}
		case b.m.GUID == p.GUID:
			return i, false
		case p.Timeout && b.m.GUID == TimeoutGUID(p.GUID):
			return i, true
		}
	}
	return -1, false
}

// arbitrateWake accepts a wake-up that the function still waits for, once. Of a signal and the
// bound of its wait the first one counts. A pause that a later suspension no longer names is
// not accepted (E12, P15).
func (b *builder) arbitrateWake() (Outcome, error) {
	row, err := b.asking(b.m.Response.Request)
	if row == nil || err != nil {
		return Stale, err
	}
	at, timeout := b.pauseOf(row)
	if at < 0 || row.Pauses[at].Taken {
		return Stale, nil
	}
	if timeout {
		return b.still(row.Pauses[at].GUID)
	}
	return "", nil
}

// take records which pause the message ends, and cancels the pause's rival: the bound for a
// signal, the wait for a bound.
func (b *builder) take() error {
	row, err := b.asking(b.response.Request)
	if row == nil || err != nil {
		return err
	}
	at, timeout := b.pauseOf(row)
	next := *row
	next.Pauses = slices.Clone(row.Pauses)
	p := &next.Pauses[at]
	p.Taken = true
	ref := p.PauseRef
	b.response.Of = &ref
	b.change(next, false)
	switch {
	case timeout:
		b.cancelWait(p.GUID)
	case p.Timeout:
		b.cancelRow(RowKey{b.m.Job, TimeoutGUID(p.GUID)})
	}
	return b.missing()
}

// woken is step 1 of a wake-up: it records the resolved wait, where the function finds it.
func (b *builder) recordResolvedWait() {
	if b.response.Of == nil {
		return
	}
	b.p.ResolvedWait = &ResolvedWait{
		Request: b.response.Request, GUID: b.m.GUID, PauseRef: *b.response.Of, Seq: b.receipt.Seq,
	}
}

// wake is step 2 of a wake-up: it sends the request again, unless the request is running, or
// waits for a retry or for a person. In that case the current or next run finds what has come
// (E12, E13).
func (b *builder) wake() error {
	row, err := b.asking(b.response.Request)
	if err != nil {
		return err
	}
	if row != nil {
		next := *row
		next.Pauses = slices.Clone(row.Pauses)
		for i := range next.Pauses {
			if p := &next.Pauses[i]; b.response.Of != nil && p.PauseRef == *b.response.Of {
				p.Came = true
			}
		}
		again := next.asleep()
		if again {
			next.published(b.s.Now, &b.mode)
		}
		b.change(next, again)
	}
	b.end()
	return nil
}

// asleep reports whether the row is that of a suspended function which was not sent again yet.
func (r *Row) asleep() bool {
	return r.Kind == journal.MessageRequest && r.Held == "" && r.Holder == "" && r.NextAt == Never
}

// suspend updates the row of the request for a suspension. A new pause is registered, one that
// exists keeps its first time, one that is no longer named is cancelled (E12). If something has
// come since the run looked, the request is sent again at once.
func (b *builder) suspend(row *Row) error {
	old := row.Pauses
	row.Pauses = make([]Pause, 0, len(b.response.Pauses))
	came := false
	for i := range b.response.Pauses {
		named := &b.response.Pauses[i]
		at := slices.IndexFunc(old, func(p Pause) bool { return p.PauseRef == named.PauseRef })
		if at >= 0 {
			row.Pauses = append(row.Pauses, old[at])
			came = came || old[at].Came
			continue
		}
		p := Pause{
			PauseRef: named.PauseRef, GUID: PauseGUID(row.GUID, named.PauseRef),
			Timeout: named.Kind == journal.PauseSignal && named.For > 0,
		}
		row.Pauses = append(row.Pauses, p)
		if err := putOff(b.arm(row, &p, named)); err != nil { // one trip asks for all pauses
			return err
		}
	}
	for i := range old {
		still := slices.ContainsFunc(row.Pauses, func(p Pause) bool { return p.GUID == old[i].GUID })
		if !still && !old[i].Taken {
			b.cancelPause(&old[i])
		}
	}
	row.NextAt = Never
	if came {
		row.published(b.s.Now, &b.mode)
	}
	return b.missing()
}

// arm registers a pause: a timer, a wait with its bound, or the start of a child.
func (b *builder) arm(row *Row, p *Pause, named *journal.Pause) error {
	if done, err := b.pastPause(row, p); done || err != nil {
		return err
	}
	switch named.Kind {
	case journal.PauseSleep:
		b.alarm(p.GUID, row.GUID, named.For)
	case journal.PauseSignal:
		b.wait(Wait{
			GUID: p.GUID, Job: b.m.Job, Activity: b.key.Activity, DAD: b.key.DAD, Topic: named.Topic,
			Key:   b.kept(named.Key),
			Since: b.s.Now, Origin: b.p.Entry.Seq, Request: row.GUID,
		})
		if named.For > 0 {
			b.alarm(TimeoutGUID(p.GUID), row.GUID, named.For)
		}
	case journal.PauseChild:
		return b.orderNamed(row, p, named)
	default:
		return errBroken("a suspension that waits for " + string(named.Kind))
	}
	return nil
}

// alarm registers a timer of a function, after that many µs.
func (b *builder) alarm(guid, request journal.GUID, after int64) {
	b.timer(Row{
		GUID: guid, Kind: journal.MessageWakeUp, NextAt: b.s.Now + Micros(after),
		Body: journal.EncodeResponse(&journal.Response{
			Kind: journal.ResponseWake, Code: CodeOK, By: journal.ByTimer, Request: request,
		}),
	}, b.key)
}

// orderNamed orders a child that a function waits for.
func (b *builder) orderNamed(row *Row, p *Pause, named *journal.Pause) error {
	child := journal.JobID(p.GUID)
	o := &StartOrder{
		Flow: named.Flow, Version: named.Version, Key: named.Key, Input: named.Input,
		Parent: journal.Parent{
			Space: b.s.Job.Space, Job: b.m.Job, Activity: b.key.Activity, DAD: string(b.key.DAD), Leg1: row.GUID,
			Awaited: true,
		},
	}
	start, err := b.startRow(o, child, b.act.Name, b.s.Now)
	if err != nil {
		return err
	}
	b.insertRow(start)
	return nil
}

// functionsChildren lists the children that the job's functions wait for and that have begun.
func (b *builder) functionsChildren() []journal.JobID {
	var children []journal.JobID
	for _, row := range b.s.Rows {
		if row == nil || row.Job != b.m.Job {
			continue
		}
		for i := range row.Pauses {
			p := &row.Pauses[i]
			start := b.s.Rows[p.GUID]
			if p.Kind != journal.PauseChild || p.Taken || start != nil && start.Sender == b.m.Job ||
				b.s.Rows[OutcomeGUID(p.GUID, 0)] != nil {
				continue
			}
			children = append(children, journal.JobID(p.GUID))
		}
	}
	return children
}
