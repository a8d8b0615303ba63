package collation

import (
	"github.com/quipu-journal/quipu/journal"
)

// complete closes the job with the semaphore at its threshold (C14).
func (b *builder) complete() error {
	c, err := b.completion()
	if err != nil {
		return err
	}
	return b.close(c)
}

// fail closes the job by an error that no transition takes (C15, E11): the
// message takes over the remaining obligations and withdraws their rows. own is
// what becomes of the activity's own, as in advance.
func (b *builder) fail(own int64) error {
	if err := b.everything(); err != nil {
		return err
	}
	r, err := b.result()
	if err != nil {
		return err
	}
	c := &journal.Close{State: journal.JobFailed, Code: r.Code, Error: failureOf(r.Error)}
	b.abandon(-own, c)
	return b.close(c)
}

// close sets the snapshot with step 2 (C14). Its completion tasks are step 3.
func (b *builder) close(c *journal.Close) error {
	b.p.Close = c
	return b.set(GUIDLedger.SetClosed)
}

// step3 runs the completion tasks, once, by the message that has the snapshot
// (1.7): the job's output, the answer to its parent, its expiry.
func (b *builder) step3() error {
	b.entry(journal.KindLeg2)
	c := b.p.Close
	if c == nil { // the job was closed by a plan before
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
		r.Kind = journal.ResponseFailedTry
	}
	row := outcome(parent, b.m.Job, r, b.s.Now, b.mode)
	row.Origin = b.p.Entry.Seq
	b.send(row)
	return nil
}
