package replaytest

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// Function builds the journal of a job with one durable function, step by step, as
// the protocol writes it. Its flow is t → fn, a worker on the topic orders.fn. The
// methods that let something happen panic where the protocol does not let it.
type Function struct {
	u       *universe
	job     journal.JobID
	request journal.GUID
}

// NewFunction begins a job with the key order-42 and gives it up to where the function is asked in
// its first turn.
func NewFunction(mode collation.Mode) *Function {
	b := flow.New("order").Version("1").Trigger("t").
		Worker("fn", "orders.fn", flow.Input("${ t.output }"), flow.Retry{Attempts: 3, Backoff: 1e9}).Transition("t", "fn").
		Output("${ fn.output }")
	u := newUniverse(Options{
		Key: "order-42", Mode: mode, Flow: built(b.Build()), Input: `{"total":5}`, Choose: func(int) int { return 0 }, silent: true,
	})
	f := (&Function{u: u, job: u.born[0]}).settle()
	for g := range u.asked {
		f.request = g
	}
	return f
}

// Sleep is a pause for Suspend; due after so many µs.
func Sleep(name, position string, after int64) journal.Pause {
	return journal.Pause{
		PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: name, Position: position}, For: after,
	}
}

// Signal is a pause for Suspend; with a bound of so many µs, if any.
func Signal(name, position, topic, key string, bound int64) journal.Pause {
	return journal.Pause{
		PauseRef: journal.PauseRef{Kind: journal.PauseSignal, Name: name, Position: position}, Topic: topic, Key: key,
		For: bound,
	}
}

// Child is a pause for Suspend; input is canonical.
func Child(name, position, flowName, input string) journal.Pause {
	return journal.Pause{
		PauseRef: journal.PauseRef{Kind: journal.PauseChild, Name: name, Position: position}, Flow: flowName,
		Input: []byte(input),
	}
}

// Suspend answers with all that the function waits for.
func (f *Function) Suspend(pauses ...journal.Pause) *Function {
	return f.Answer(&journal.Response{Kind: journal.ResponseSuspended, Code: collation.CodeOK, Pauses: pauses})
}

// Succeed answers with the output, which ends the function.
func (f *Function) Succeed(output string) *Function {
	return f.Answer(&journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: []byte(output)})
}

// Fail answers with an error of the class, terminal or a failed attempt; undone says
// that its compensations have run.
func (f *Function) Fail(kind journal.ResponseKind, code int, class, message string, undone bool) *Function {
	return f.Answer(&journal.Response{
		Kind: kind, Code: code, Error: &journal.Failure{Class: class, Message: message}, Undone: undone,
	})
}

// Answer answers the function's request in its turn.
func (f *Function) Answer(r *journal.Response) *Function {
	return f.handle(*journaltest.Response(f.row(), r))
}

// Start records the start of an effect.
func (f *Function) Start(position, name, class string) *Function {
	return f.Record(journal.KindEffectStarted, journal.Effect{Name: name, Class: class, Position: position})
}

// Complete records the result of an effect.
func (f *Function) Complete(position, name, class, result string) *Function {
	return f.Record(journal.KindEffectCompleted,
		journal.Effect{Name: name, Class: class, Position: position, Result: []byte(result)})
}

// Effect records an effect with its result, and its start where the class has one.
func (f *Function) Effect(position, name, class, result string) *Function {
	if class == "guarded" || class == "idempotent" {
		f.Start(position, name, class)
	}
	return f.Complete(position, name, class, result)
}

// Record records the start or the result of an effect of the run that the function is in, or that
// parked it; its key is filled in.
func (f *Function) Record(kind journal.Kind, e journal.Effect) *Function {
	run := f.u.run(f.row())
	if f.row().Held != "" {
		run.Turn--
	}
	e.Key = effectKey(f.request, e.Name, e.N)
	f.u.record(kind, run, e)
	return f
}

// Wake lets the timer of a sleep go off.
func (f *Function) Wake(name string) *Function {
	return f.alarm(f.pause(journal.PauseSleep, name))
}

// TimeOut lets the bound of a signal's wait go off.
func (f *Function) TimeOut(name string) *Function {
	return f.alarm(collation.TimeoutGUID(f.pause(journal.PauseSignal, name)))
}

func (f *Function) alarm(g journal.GUID) *Function {
	l := f.taken(func(l *letter) bool { return l.m.GUID == g })
	f.u.now = max(f.u.now, l.at)
	return f.handle(l.m)
}

// taken takes a letter from the inbox.
func (f *Function) taken(want func(*letter) bool) letter {
	for i := range f.u.inbox {
		if l := f.u.inbox[i]; want(&l) {
			f.u.inbox = slices.Delete(f.u.inbox, i, i+1)
			return l
		}
	}
	panic("there is no such timer or child")
}

// Deliver sends a signal to whoever waits for it; its wake-up is handled.
func (f *Function) Deliver(topic, key string, code int, payload string) *Function {
	return f.Send(topic, key, code, payload).settle()
}

// Send sends a signal; its wake-up stays on its way.
func (f *Function) Send(topic, key string, code int, payload string) *Function {
	f.u.send(topic, key, code, payload, false)
	return f
}

// pause is how the pause of that name is known, that the function waits for.
func (f *Function) pause(kind journal.PauseKind, name string) journal.GUID {
	row := f.row()
	i := slices.IndexFunc(row.Pauses, func(p collation.Pause) bool { return p.Kind == kind && p.Name == name })
	if i < 0 {
		panic("the function does not wait for it")
	}
	return row.Pauses[i].GUID
}

// start is the row of the start of a child that has not begun.
func (f *Function) start(name string) *collation.Row {
	g := f.pause(journal.PauseChild, name)
	return f.taken(func(l *letter) bool { return l.row != nil && l.row.GUID == g }).row
}

// Begin lets the child begin: its start can no longer be taken back.
func (f *Function) Begin(name string) *Function {
	must(f.u.driven.Refuse(ctx, f.start(name), nil))
	return f
}

// Outcome lets the child begin and end with the response.
func (f *Function) Outcome(name string, r *journal.Response) *Function {
	row := f.start(name)
	order, err := row.Order()
	must(err)
	f.u.end(row, order.Outcome(row.Job, r, f.u.now, f.u.o.Mode))
	return f.settle()
}

// Retry lets an operator release the function's row, and take back what the effect has done.
func (f *Function) Retry(effect string) *Function {
	f.u.act(f.row(), collation.Action{Retry: true, Effect: effectKey(f.request, effect, 0)})
	return f
}

// Interrupt closes the job from outside.
func (f *Function) Interrupt(reason string) *Function {
	f.u.interrupt(f.job, &collation.InterruptOrder{Code: 410, Reason: reason, Throw: true, Descend: true, From: "ann"})
	return f.settle()
}

// Journal takes down what is stored of the job now.
func (f *Function) Journal() *Journal { return f.u.journal(f.job) }

func (f *Function) row() *collation.Row {
	row := f.u.store.Peek(f.job, f.request, f.request).Row
	if row == nil {
		panic("the request has ended")
	}
	return row
}

func (f *Function) handle(m collation.Message) *Function {
	f.u.now += 1000
	f.u.step(m)
	return f.settle()
}

// settle handles all but timers, and begins no child.
func (f *Function) settle() *Function {
	for {
		i := slices.IndexFunc(f.u.inbox, func(l letter) bool {
			return l.row == nil && (l.at == collation.Never || l.m.Kind != journal.MessageWakeUp)
		})
		if i < 0 {
			return f
		}
		f.u.turn(i)
	}
}
