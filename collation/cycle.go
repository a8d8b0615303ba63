package collation

// A cycle sends its pivot into a further pass. It reads the results that its input mentions,
// decides whether there are too many passes, and writes the message to the pivot.

import (
	"cmp"
	"fmt"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// cycle sends its pivot into the next pass (1.11). The cycle's obligation moves to the pivot,
// so the semaphore stays as it is.
func (b *builder) cycle(t *task) error {
	input, err := b.act.Input(t)
	if err != nil {
		return b.answer(t, expressionAnswer(err))
	}
	if err := b.completeLeg1(b.key, More{}); err != nil {
		return err
	}
	pivot := b.act.To
	row := Row{
		GUID: CycleGUID(b.m.GUID), Job: b.m.Job, Kind: journal.MessageCycle, Activity: pivot.Name,
		DAD: b.key.DAD.Prefix(pivot.Depth + 1).Base(), Topic: b.act.Name, Origin: b.p.Entry.Seq,
		Body: journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: CodeOK, Output: input}),
	}
	row.published(b.s.Now, &b.mode)
	b.insertRow(row)
	return nil
}

// tooMany reports whether a cycle's message makes one pass more than the cycle's `max`.
func (b *builder) tooMany() (*flow.Activity, bool) {
	if b.m.Kind != journal.MessageCycle || b.row == nil {
		return nil, false
	}
	by, ok := b.s.Flow.Activity(b.row.Topic)
	return by, ok && b.receipt.Ledger.Ordinal()-1 > by.Max
}

// overrun fails the job because a cycle goes round more often than it may.
func (b *builder) overrun(by *flow.Activity) error {
	_, err := b.settle(&journal.Result{Code: CodeInternal, Error: &journal.Failure{
		Class: "cycle",
		Message: fmt.Sprintf("%s sent %s into pass %d, its `max` is %d: raise it, or let a condition end the loop",
			by.Name, b.act.Name, b.receipt.Ledger.Ordinal()-1, by.Max),
	}})
	if err := cmp.Or(err, b.everything()); err != nil { // asked together with the result: one trip
		return err
	}
	return b.fail(-1)
}
