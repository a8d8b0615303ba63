package replaytest

import (
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// FunctionTopic is that of the workers of Mixed which are durable functions.
const FunctionTopic = "fn"

// function is one durable function under way: what it named so far, and how often
// it suspends yet.
type function struct {
	named []journal.Pause
	left  int
	undos []journal.Effect
}

func (u *universe) function(r *collation.Row) *function {
	f := u.functions[r.GUID]
	if f == nil {
		f = &function{left: 1 + u.o.Choose(4)}
		u.functions[r.GUID] = f
	}
	return f
}

// suspend chooses what the function waits for, from what it sees in its row: most
// of what has not come, and something new. Nil: it goes on to its end.
func (u *universe) suspend(r *collation.Row) *journal.Response {
	f := u.function(r)
	u.register(r, f)
	if f.left == 0 {
		return nil
	}
	f.left--
	var pauses []journal.Pause
	for i := range f.named {
		n := &f.named[i]
		at := slices.IndexFunc(r.Pauses, func(p collation.Pause) bool { return p.Kind == n.Kind && p.Name == n.Name })
		stands := at >= 0 && !r.Pauses[at].Taken
		gone := at < 0 && !u.came(r, n)
		if stands && u.o.Choose(5) > 0 || gone && u.o.Choose(8) == 0 {
			pauses = append(pauses, *n)
		}
	}
	for range 1 + u.o.Choose(2) {
		p := u.pause(len(f.named))
		f.named = append(f.named, p)
		pauses = append(pauses, p)
	}
	return &journal.Response{Kind: journal.ResponseSuspended, Code: collation.CodeOK, Pauses: pauses}
}

// came reports whether something has come, or was refused, so that its name is
// used up.
func (u *universe) came(r *collation.Row, p *journal.Pause) bool {
	g := collation.PauseGUID(r.GUID, p.PauseRef)
	for _, message := range []journal.GUID{g, collation.TimeoutGUID(g), collation.OutcomeGUID(g, 0)} {
		if u.handled[message] || u.store.Peek(r.Job, message, message).Row != nil {
			return true
		}
	}
	return p.Kind == journal.PauseChild // one that has begun does not begin again
}

// pause makes something new to wait for.
func (u *universe) pause(n int) journal.Pause {
	o := &u.o
	ref := journal.PauseRef{Name: fmt.Sprintf("p%d", n), Position: fmt.Sprint(100 + n)}
	switch o.Choose(6) {
	case 0, 1:
		ref.Kind = journal.PauseSleep
		return journal.Pause{PauseRef: ref, For: int64(o.Choose(3)) * 3600e6}
	case 2:
		ref.Kind = journal.PauseSignal
		return journal.Pause{PauseRef: ref, Topic: topics[o.Choose(2)], Key: keys[o.Choose(2)]}
	case 3, 4:
		ref.Kind = journal.PauseSignal
		return journal.Pause{
			PauseRef: ref, Topic: topics[o.Choose(2)], Key: keys[o.Choose(2)], For: int64(1+o.Choose(3)) * 1800e6,
		}
	}
	ref.Kind = journal.PauseChild
	flows := []string{"child", "patient", "nobody"}
	if !o.Trouble {
		flows = flows[:2]
	}
	return journal.Pause{PauseRef: ref, Flow: flows[o.Choose(len(flows))], Input: []byte(`{"n":1}`)}
}

// register registers compensations, now and then.
func (u *universe) register(r *collation.Row, f *function) {
	if !u.o.Effects || len(f.undos) == 2 || u.o.Choose(3) > 0 {
		return
	}
	name := fmt.Sprintf("undo-%d", len(f.undos))
	e := journal.Effect{
		Key: effectKey(r.GUID, name, 0), Name: name, Class: collation.ClassUndo,
		Position: fmt.Sprint(10 + len(f.undos)),
	}
	f.undos = append(f.undos, e)
	u.record(journal.KindEffectStarted, u.run(r), e)
}

// compensate runs the compensations of a function that ends in an error by itself,
// if it lives long enough for that.
func (u *universe) compensate(r *collation.Row, resp *journal.Response) {
	f := u.functions[r.GUID]
	if f == nil || resp.Kind != journal.ResponseTerminal || resp.Code == collation.CodeOK || u.o.Choose(3) == 0 {
		return
	}
	for _, e := range slices.Backward(f.undos) {
		e.Result = []byte("null")
		u.record(journal.KindEffectCompleted, u.run(r), e)
	}
	resp.Undone = true
}
