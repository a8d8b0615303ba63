package collation

// A hook is answered by a signal or a time, whichever comes first. It reads the results that
// key and time mention, later its wait. It decides which rival was first, and in which pass. It
// writes the wait, the timer and the bound.

import (
	"fmt"

	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// hook registers the wait, the timer and the bound of a hook.
func (b *builder) hook(t *task) error {
	var at Micros
	var name string
	var err error
	if t.act.HasSleep {
		sleep, failed := t.act.Sleep(t)
		at, err = b.s.Now+Micros(sleep.Microseconds()), failed
	}
	if t.act.Topic != "" && err == nil {
		name, err = t.act.Key(t)
		name = b.kept(name)
	}
	if err != nil {
		return b.answer(t, expressionAnswer(err))
	}
	if err := b.completeLeg1(t.key, More{Leg1: t.leg1}); err != nil {
		return err
	}
	if t.act.Topic != "" {
		b.wait(Wait{
			GUID: WakeUpGUID(t.leg1, journal.BySignal, ""), Job: b.m.Job, Activity: t.key.Activity, DAD: t.key.DAD,
			Topic: t.act.Topic, Key: name, Repeat: t.act.Repeat, MaxAge: Micros(t.act.MaxAge.Microseconds()),
			Since: b.s.Now, Origin: b.p.Entry.Seq,
		})
	}
	if t.act.HasSleep {
		b.timer(Row{
			GUID: WakeUpGUID(t.leg1, journal.ByTimer, ""), Kind: journal.MessageWakeUp, NextAt: at,
			Body: journal.EncodeResponse(&journal.Response{
				Kind: journal.ResponseTerminal, Code: CodeOK, By: journal.ByTimer,
			}),
		}, t.key)
	}
	b.bound(t)
	return nil
}

// bound registers the answer that ends an activity when its `within` has passed (E9).
func (b *builder) bound(t *task) {
	if t.act.Within <= 0 {
		return
	}
	message := fmt.Sprintf("%s was not ended within %s", t.act.Name, t.act.Within)
	b.timer(Row{
		GUID: ResponseGUID(t.leg1, 0), Kind: journal.MessageAnswer,
		NextAt: b.s.Now + Micros(t.act.Within.Microseconds()),
		Body:   errorAnswer(CodeTimeout, classWithin, message),
	}, t.key)
}

// still accepts a rival of a signal as long as the wait is open.
func (b *builder) still(wait journal.GUID) (Outcome, error) {
	w, err := b.waiting(wait)
	if w == nil {
		return Stale, err // the signal was first
	}
	return "", nil
}

// afterPasses makes the message that ends a repeating hook wait for the passes before it.
func (b *builder) afterPasses(bySignal bool) (Outcome, error) {
	if err := b.everything(); err != nil {
		return "", err
	}
	for g, row := range b.s.Rows {
		if row == nil || g == b.m.Row || row.Kind != journal.MessageWakeUp ||
			(InstanceKey{row.Activity, row.DAD}) != b.key {
			continue
		}
		r, err := journal.DecodeResponse(row.Body)
		if err == nil && r.By == journal.BySignal && (!bySignal || r.Number < b.m.Response.Number) {
			return Later, nil
		}
	}
	return "", nil
}

// signal is the variable `signal` of a hook's `output`; nil when a timer woke the hook.
func (b *builder) signal() []byte {
	if b.response == nil || b.response.By != journal.BySignal {
		return nil
	}
	payload := b.response.Output
	if payload == nil {
		payload = []byte("null")
	}
	code := CodeOK
	if b.response.Kind == journal.ResponsePass {
		code = CodePass
	}
	text := fmt.Appendf(nil, `{"code":%d,"id":`, code)
	text = canonical.AppendString(text, b.response.Signal.String())
	return append(append(append(text, `,"payload":`...), payload...), '}')
}
