package collation

import (
	"bytes"
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// complete closes the job because its semaphore is 0 (C14).
func (b *builder) complete() error {
	c, err := b.completion()
	if err != nil {
		return err
	}
	return b.close(c)
}

// fail closes the job by an error that no transition takes (C15, E11): the message ends the
// remaining obligations and cancels their rows. own is as in advance.
func (b *builder) fail(own int64) error {
	if err := b.everything(); err != nil {
		return err
	}
	r, err := b.result()
	if err != nil {
		return err
	}
	c := &journal.Close{State: journal.JobFailed, Code: r.Code, Error: FailureOf(r.Error)}
	b.abandon(-own, c)
	return b.close(c)
}

// close sets the closed digit together with step 2 (C14). The completion tasks are step 3.
func (b *builder) close(c *journal.Close) error {
	b.p.Close = c
	return b.set(GUIDLedger.SetClosed)
}

// step3 runs the completion tasks, once, in the message that closed the job (1.7): the job's
// output, the answer to its parent, its expiry.
func (b *builder) step3() error {
	b.entry(journal.KindLeg2)
	c := b.p.Close
	if c == nil { // an earlier plan closed the job
		c = &journal.Close{State: b.s.Job.State}
		b.p.Entry.Close = c
	}
	if c.State == journal.JobCompleted {
		scope, err := b.whole()
		if err != nil {
			return err
		}
		if c.Output, err = b.s.Flow.Output(scope); err != nil {
			return errBroken("the job's output failed after it was decided: " + err.Error())
		}
	}
	if err := b.reply(c.Output); err != nil {
		return err
	}
	if err := b.set(GUIDLedger.SetStep3); err != nil {
		return err
	}
	b.p.Tasks = true
	if keep := b.s.Flow.Expire(); keep > 0 {
		b.p.ExpiresAt = b.s.Now + Micros(keep.Microseconds())
	}
	b.end()
	return nil
}

// reply tells the parent that awaits the job how it ended (1.11).
func (b *builder) reply(output []byte) error {
	parent := b.s.Job.Parent
	if parent == nil || !parent.Awaited {
		return nil
	}
	c, err := b.closed()
	if err != nil {
		return err
	}
	r := &journal.Response{Kind: journal.ResponseTerminal, Code: c.Code, Error: c.Error}
	switch c.State {
	case journal.JobCompleted:
		r.Output = output
	case journal.JobFailed:
		r.Kind = journal.ResponseFailedAttempt
	}
	row := outcome(parent, b.m.Job, r, b.s.Now, b.mode)
	row.Origin = b.p.Entry.Seq
	b.insertRow(row)
	return nil
}

// abandon ends the obligations that a close leaves open, except own, and cancels their rows and
// waits (C15).
func (b *builder) abandon(own int64, cause *journal.Close) {
	b.p.Entry.Abandoned = int(b.p.Semaphore.Before - own)
	b.p.Semaphore.After = 0
	var all []gone
	var undo []*Row
	for g, row := range b.s.Rows {
		switch {
		case row == nil || g == b.m.Row || b.cancelled(g):
			continue
		case row.Job == b.m.Job && obligation(row.Kind):
			all = append(all, gone{key: RowKey{row.Job, g}, dead: row.Dead, why: cancelledByClose})
			if row.Undo {
				undo = append(undo, row)
			}
		case row.Job != b.m.Job && row.Sender == b.m.Job && !row.Undo:
			all = append(all, gone{key: RowKey{row.Job, g}, why: cancelledByClose})
		}
	}
	for g, w := range b.s.Waits {
		if w != nil && w.Job == b.m.Job && !b.cancelled(g) {
			all = append(all, gone{key: RowKey{w.Job, g}, wait: w, why: cancelledByClose})
		}
	}
	slices.SortFunc(all, func(x, y gone) int { return byBytes(x.key.GUID, y.key.GUID) })
	b.gone = append(b.gone, all...)
	for i := range all {
		b.undelivered(b.s.Rows[all[i].key.GUID])
	}
	slices.SortFunc(undo, func(x, y *Row) int { return byBytes(x.GUID, y.GUID) })
	for _, row := range undo {
		b.orderUndo(row, cause.Code, closeReason(cause))
	}
}

func closeReason(c *journal.Close) string {
	if c.Error == nil {
		return "the job was ended as completed"
	}
	return c.Error.Message
}

func byBytes(x, y journal.GUID) int { return bytes.Compare(x[:], y[:]) }

// obligation reports whether a close cancels rows of this kind. Signals, interrupts, outcomes
// and the job's own start are no obligations (C15).
func obligation(k journal.MessageKind) bool {
	switch k {
	case journal.MessageLeg1, journal.MessageRequest, journal.MessageAnswer, journal.MessageWakeUp,
		journal.MessageCycle:
		return true
	}
	return false
}

// completion returns how the job ends without an error. If its output fails, it ends as failed
// (E11).
func (b *builder) completion() (*journal.Close, error) {
	scope, err := b.whole()
	if err != nil {
		return nil, err
	}
	if _, err := b.s.Flow.Output(scope); err != nil {
		return &journal.Close{
			State: journal.JobFailed, Code: CodeInternal,
			Error: &journal.Failure{Class: ReasonExpression, Message: short(err)},
		}, nil
	}
	return &journal.Close{State: journal.JobCompleted, Code: CodeOK}, nil
}
