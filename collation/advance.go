package collation

import (
	"errors"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// whenError wraps the error of a transition's `when` expression.
type whenError struct{ err error }

func (e *whenError) Error() string { return e.err.Error() }

// advance decides the transitions of a pass, dispatches the children, and closes the job when
// nothing stays open. own is the change of the semaphore for the activity itself: −1 when it
// ends, 0 while it stays open (C13).
func (b *builder) advance(own int64) error {
	result, err := b.result()
	if err != nil {
		return err
	}
	if !result.Ran {
		return errBroken("the entry that holds the result of " + b.key.Activity + " was not found")
	}
	if result.Code == CodeOK && b.act.HasOutput() && !result.Taken {
		if result, err = b.mapped(); err != nil {
			return err
		}
	}
	failed := result.Code != CodeOK
	taken, err := b.taken(failed)
	if when := (*whenError)(nil); errors.As(err, &when) {
		failed = true
		taken, err = b.failExpression(when)
	}
	if err != nil {
		return err
	}
	if failed && len(taken) == 0 {
		return b.fail(own)
	}
	n, err := b.children(taken)
	if err != nil {
		return err
	}
	b.p.Semaphore.After = b.p.Semaphore.Before + int64(n) + own
	if b.p.Semaphore.After == 0 {
		return b.complete()
	}
	b.end()
	return nil
}

// mapped evaluates the activity's `output`, which becomes the result. An expression that fails
// becomes the activity's error 500 (E11).
func (b *builder) mapped() (*flow.Result, error) {
	scope, err := b.scope(b.act, b.at.DAD, b.act.MapNeeds())
	if err != nil {
		return nil, err
	}
	output, err := b.act.MapOutput(scope, b.signal())
	r := &journal.Result{Code: CodeOK, Output: output}
	if err != nil {
		r = &journal.Result{Code: CodeInternal, Error: &journal.Failure{Class: ReasonExpression, Message: short(err)}}
	}
	return b.settle(r)
}

// settle records a result that the engine made as the activity's result.
func (b *builder) settle(r *journal.Result) (*flow.Result, error) {
	if b.response != nil {
		r.By = b.response.By
	}
	b.p.Entry.Result = r
	b.own = ResultOf(b.p.Entry)
	return b.own, b.record(b.p.Entry.Seq, r.Code)
}

// failExpression turns a failed `when` into the activity's error 500 (E11), and decides the
// error transitions. If one of them fails too, none is taken.
func (b *builder) failExpression(when *whenError) (map[*flow.Transition]bool, error) {
	e := b.p.Entry
	e.Trouble = &journal.Trouble{Reason: ReasonExpression, Message: short(when.err)}
	e.Result = nil
	if err := b.record(e.Seq, CodeInternal); err != nil {
		return nil, err
	}
	b.own = ResultOf(e)
	taken, err := b.taken(true)
	if errors.As(err, &when) {
		return nil, nil
	}
	return taken, err
}

// result is the result of the message's own activity, in its pass.
func (b *builder) result() (*flow.Result, error) {
	if b.own != nil {
		return b.own, nil
	}
	var err error
	b.own, err = b.load(b.at)
	return b.own, err
}
