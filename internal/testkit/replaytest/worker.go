package replaytest

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

func (u *universe) respond(r *collation.Row) *journal.Response {
	o := &u.o
	if o.Respond != nil {
		if resp := o.Respond(r.Activity, r.Turn); resp != nil {
			return resp
		}
	}
	if r.Topic == FunctionTopic {
		if resp := u.suspend(r); resp != nil {
			return resp
		}
	}
	resp := u.answer(r)
	u.compensate(r, resp)
	return resp
}

// answer chooses how a request is answered.
func (u *universe) answer(r *collation.Row) *journal.Response {
	o := &u.o
	choice := 0
	if o.Trouble {
		choice = o.Choose(20)
	}
	switch {
	case choice >= 15 && choice < 18:
		return &journal.Response{
			Kind: journal.ResponseFailedAttempt, Code: 503,
			Error: &journal.Failure{Class: "error", Message: "no luck", Stack: "main.go:1"},
		}
	case choice == 18:
		return &journal.Response{
			Kind: journal.ResponseTerminal, Code: 409, Error: &journal.Failure{Class: "conflict", Message: "taken", Data: []byte(`{"by":"x"}`)},
		}
	case choice == 19:
		class := []string{collation.ClassParked, collation.ClassConfirm}[o.Choose(2)]
		return &journal.Response{
			Kind: journal.ResponseParked, Code: 500, Error: &journal.Failure{Class: class, Message: "unknown"},
		}
	}
	output := fmt.Appendf(nil, `{"turn":%d}`, r.Turn)
	if o.Every {
		output = fmt.Appendf(nil, `{"again":%t,"turn":%d}`, o.Choose(3) == 1, r.Turn)
	}
	return &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: output}
}

var classes = []string{"guarded", "idempotent", "pure", "tx"}

// lateEffect is an effect whose run comes back after some commits.
type lateEffect struct {
	run    collation.Lease
	effect journal.Effect
	at     int
}

// run is the run of a request that its worker is about to answer.
func (u *universe) run(r *collation.Row) collation.Lease {
	return collation.Lease{
		Job: r.Job, Request: r.GUID, Turn: r.Turn, Holder: fmt.Sprint("run in turn ", r.Turn), Session: u.session, Fence: r.Fence,
		Fresh: r.Holder == "",
	}
}

// work records the effects of one run of a request (3.1).
func (u *universe) work(r *collation.Row) {
	if !u.o.Effects {
		return
	}
	recorded := u.effects(r)
	for n := range 1 + u.o.Choose(2) {
		e := journal.Effect{Name: fmt.Sprintf("effect-%d", n), Class: classes[u.o.Choose(len(classes))]}
		e.Key = effectKey(r.GUID, e.Name, 0)
		if r.Topic == FunctionTopic {
			e.Position = fmt.Sprint(n + 1)
		}
		if known := slices.IndexFunc(recorded, func(s store.EffectRow) bool { return s.Key == e.Key }); known >= 0 {
			if recorded[known].State != store.EffectStarted {
				continue // cached: the handler gets the recorded result
			}
			e.Class = recorded[known].Class
			if e.Class == "guarded" { // a run that takes the call over asks (E4)
				e.Finding = &journal.Finding{Verifier: "oracle", Asked: int64(u.now), Took: 1}
			}
		}
		external := e.Class == "guarded" || e.Class == "idempotent"
		if external {
			u.record(journal.KindEffectStarted, u.run(r), e)
		}
		if external && u.o.Choose(4) == 0 {
			u.late = append(u.late, lateEffect{u.run(r), e, u.commits + u.o.Choose(6)})
			continue
		}
		e.Result = []byte(`{"ok":true}`)
		u.record(journal.KindEffectCompleted, u.run(r), e)
	}
}

// effects are what is recorded of the effects of a request.
func (u *universe) effects(r *collation.Row) []store.EffectRow {
	rows, err := u.store.Effects(ctx, r.Job, r.GUID)
	must(err)
	return rows
}

// finishLate completes effects whose runs come back (E4, J8).
func (u *universe) finishLate() {
	due := u.late
	u.late = nil
	for _, l := range due {
		if l.at > u.commits {
			u.late = append(u.late, l)
			continue
		}
		l.effect.Result = []byte(`{"late":1}`)
		u.record(journal.KindEffectCompleted, l.run, l.effect)
	}
}

// record lets a run record the start or the result of an effect.
func (u *universe) record(kind journal.Kind, run collation.Lease, e journal.Effect) {
	want := store.Want{Chain: run.Key(), Effects: []journal.Digest{e.Key}}
	must(u.driven.Decide(ctx, want, func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
		var x collation.Effected
		var err error
		if kind == journal.KindEffectStarted {
			x, err = l.Chains[want.Chain].Start(run, e, u.o.Mode)
		} else {
			x, err = l.Chains[want.Chain].Finish(run, e, false, u.o.Mode)
		}
		return x.Plan, nil, err
	}))
}

// effectKey is the key of an effect. Package effects derives the real ones.
func effectKey(request journal.GUID, name string, n int) journal.Digest {
	return sha256.Sum256(fmt.Appendf(nil, "%s %s %d", request, name, n))
}

// doubted chooses the effect of a parked request that an operator decides on: one that is
// unfinished or, now and then, one whose result he takes back; zero: none.
func (u *universe) doubted(r *collation.Row) (key journal.Digest) {
	if r.Kind != journal.MessageRequest || r.Held != collation.HeldParked {
		return key
	}
	which := store.EffectStarted
	if u.o.Trouble && u.o.Choose(3) == 0 {
		which = store.EffectCompleted
	}
	for _, f := range u.effects(r) {
		external := f.Class == "guarded" || f.Class == "idempotent"
		if external && f.State == which {
			return f.Key
		}
	}
	return key
}
