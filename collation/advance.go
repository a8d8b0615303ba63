package collation

import (
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// whenError is a transition's expression that failed.
type whenError struct{ err error }

func (e *whenError) Error() string { return e.err.Error() }

// advance decides the transitions of a pass, dispatches the children and closes
// the job when nothing stays open. own is what becomes of the activity's own
// obligation: −1 when it ends, 0 while it stays open (C13).
func (b *builder) advance(own int64) error {
	result := b.result()
	if !b.need.Empty() {
		return nil
	}
	if !result.Ran {
		return errBroken("the entry that holds the result of " + b.key.Activity + " was not found")
	}
	if result.Code == CodeOK && b.act.HasOutput() {
		if result = b.mapped(); !b.need.Empty() {
			return nil
		}
	}
	failed := result.Code != CodeOK
	taken, err := b.taken(failed)
	if when := (*whenError)(nil); errors.As(err, &when) {
		taken, failed = b.failExpression(when)
	}
	if !b.need.Empty() {
		return nil
	}
	if failed && len(taken) == 0 {
		return b.fail(own)
	}
	n, err := b.children(taken)
	if err != nil || !b.need.Empty() {
		return err
	}
	b.p.Semaphore.After = b.p.Semaphore.Before + int64(n) + own
	if b.p.Semaphore.After == 0 {
		return b.complete()
	}
	b.end()
	return nil
}

// mapped evaluates the activity's `output`; what it gives is the result, and an
// expression that fails is the activity's error 500 (E11).
func (b *builder) mapped() *flow.Result {
	output, err := b.act.MapOutput(b.scope(b.act, b.at.DAD, b.act.MapNeeds()), b.signal())
	if !b.need.Empty() {
		return nil
	}
	r := &journal.Result{Code: CodeOK, Output: output}
	if err != nil {
		r = &journal.Result{Code: CodeInternal, Error: &journal.Failure{Class: ReasonExpression, Message: short(err)}}
	}
	return b.settle(r)
}

// settle makes a result of the engine's own that of the activity.
func (b *builder) settle(r *journal.Result) *flow.Result {
	if b.response != nil {
		r.By = b.response.By
	}
	b.p.Entry.Result = r
	b.record(b.p.Entry.Seq, r.Code)
	b.own = ResultOf(b.p.Entry)
	return b.own
}

// signal is what a hook's `output` sees as signal, nil when a timer woke it.
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

// failExpression makes a `when` that failed the activity's error 500 (E11) and
// decides the transitions for errors. One that fails there too takes none.
func (b *builder) failExpression(when *whenError) (map[*flow.Transition]bool, bool) {
	e := b.p.Entry
	e.Trouble = &journal.Trouble{Reason: ReasonExpression, Message: short(when.err)}
	e.Result = nil
	b.record(e.Seq, CodeInternal)
	b.own = ResultOf(e)
	taken, err := b.taken(true)
	if err != nil {
		return nil, true
	}
	return taken, true
}

// overrun fails the job because a cycle goes round more often than it may.
func (b *builder) overrun(by *flow.Activity) error {
	b.settle(&journal.Result{Code: CodeInternal, Error: &journal.Failure{
		Class: "cycle",
		Message: fmt.Sprintf("%s sent %s into pass %d, its `max` is %d: raise it, or let a condition end the loop",
			by.Name, b.act.Name, b.receipt.Ledger.Ordinal()-1, by.Max),
	}})
	return b.fail(-1)
}

// result is the result of the message's own activity, in its pass.
func (b *builder) result() *flow.Result {
	if b.own != nil {
		return b.own
	}
	r, ok := b.load(b.at)
	if !ok {
		return &flow.Result{}
	}
	b.own = r
	return r
}
