package collation

import (
	"bytes"
	"slices"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// complete closes the job with the semaphore at its threshold (C14). An output
// that fails closes it as failed (E11).
func (b *builder) complete() error {
	c := &journal.Close{State: journal.JobCompleted, Code: CodeOK}
	_, err := b.s.Flow.Output(b.scope(b.key))
	if !b.need.Empty() {
		return nil
	}
	if err != nil {
		c.State, c.Code = journal.JobFailed, CodeInternal
		c.Error = &journal.Failure{Class: ReasonExpression, Message: short(err)}
	}
	return b.close(c)
}

// fail closes the job by an error that no transition takes (C15, E11): the
// message takes over the remaining obligations and withdraws their rows.
func (b *builder) fail() error {
	if !b.s.AllRows {
		b.need.AllRows = true
		return nil
	}
	own := b.result()
	c := &journal.Close{State: journal.JobFailed, Code: own.Code, Error: b.failure()}
	b.p.Entry.Abandoned = int(b.p.Semaphore.Before - 1)
	b.p.Semaphore.After = 0
	for _, g := range b.withdrawn() {
		b.p.Delete = append(b.p.Delete, g)
		b.p.Entry.Withdrawn = append(b.p.Entry.Withdrawn, g)
		if b.s.Rows[g].Dead {
			b.p.Undead = append(b.p.Undead, g)
		}
	}
	return b.close(c)
}

// failure is the error with which the message's activity ended.
func (b *builder) failure() *journal.Failure {
	if t := b.p.Entry.Trouble; t != nil {
		return &journal.Failure{Class: t.Reason, Message: t.Message}
	}
	if b.response != nil && b.response.Error != nil {
		f := *b.response.Error
		f.Stack = "" // it stands in the response
		return &f
	}
	return &journal.Failure{Class: "error", Message: b.m.Activity + " failed"}
}

// withdrawn lists the rows that a close takes back, sorted: those that are
// obligations of the job (C15). The closer's own row ends with its last mark.
func (b *builder) withdrawn() []journal.GUID {
	var out []journal.GUID
	for g, row := range b.s.Rows {
		if row == nil || g == b.m.Row || row.Job != b.m.Job {
			continue
		}
		switch row.Kind {
		case journal.MessageLeg1, journal.MessageRequest, journal.MessageAnswer,
			journal.MessageWakeUp, journal.MessageCycle:
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b journal.GUID) int { return bytes.Compare(a[:], b[:]) })
	return out
}

// close sets the snapshot with step 2 (C14). Its completion tasks are step 3.
func (b *builder) close(c *journal.Close) error {
	ledger, err := b.receipt.Ledger.SetClosed()
	if err != nil {
		return err
	}
	b.write(ledger, journal.VerdictHandled)
	b.p.Receipt.Closes = true
	b.p.Close, b.p.NewState = c, c.State
	b.p.Entry.Close = c
	b.mark(journal.MarkClosed)
	return nil
}

// step3 runs the completion tasks, once, by the message that has the snapshot
// (1.7): the job's output.
func (b *builder) step3() error {
	if !b.need.Empty() {
		return nil
	}
	ledger, err := b.receipt.Ledger.SetStep3()
	if err != nil {
		return err
	}
	if b.p.Close == nil {
		b.entry(journal.KindLeg2)
		b.p.Entry.Close = &journal.Close{State: b.s.Job.State}
	}
	if b.p.Entry.Close.State == journal.JobCompleted {
		out, err := b.s.Flow.Output(b.scope(b.key))
		if !b.need.Empty() {
			return nil
		}
		if err != nil {
			return errBroken("the job's output failed after it was decided: " + err.Error())
		}
		b.p.Entry.Close.Output = out
	}
	b.write(ledger, journal.VerdictHandled)
	b.mark(journal.MarkTasks)
	b.p.Tasks = true
	b.end()
	return nil
}

// result is the result of the message's own activity.
func (b *builder) result() *flow.Result {
	if b.own == nil {
		if b.m.Kind != journal.MessageStart && b.p.Entry.Response != nil {
			b.own = ResultOf(b.p.Entry)
			return b.own
		}
		r, ok := b.load(b.key)
		if !ok {
			return &flow.Result{}
		}
		b.own = r
	}
	return b.own
}

// load gives a result that was loaded, or asks for it.
func (b *builder) load(key InstanceKey) (*flow.Result, bool) {
	r, asked := b.s.Results[key]
	if !asked {
		if !slices.Contains(b.need.Results, key) {
			b.need.Results = append(b.need.Results, key)
		}
		return nil, false
	}
	if r == nil {
		r = &flow.Result{}
	}
	return r, true
}

// scope is what an expression of the instance sees: results along its own
// address (1.9).
func (b *builder) scope(key InstanceKey) flow.Scope { return &scope{b, key} }

type scope struct {
	b   *builder
	key InstanceKey
}

// Result implements flow.Scope.
func (s *scope) Result(name string) (flow.Result, bool) {
	act, ok := s.b.s.Flow.Activity(name)
	if !ok {
		return flow.Result{}, false
	}
	key := addressOf(act, s.key.DAD)
	if s.b.own != nil && key == s.b.key {
		return *s.b.own, true
	}
	r, ok := s.b.load(key)
	if !ok {
		return flow.Result{}, false
	}
	return *r, true
}

// Job implements flow.Scope.
func (s *scope) Job() flow.JobInfo {
	j := &s.b.s.Job
	return flow.JobInfo{ID: j.Key, Flow: j.Flow.Name, Version: j.Flow.Version, StartedMicros: int64(j.Started)}
}

// addressOf is where the output of act is seen from the address dad (1.9): at
// the prefix of act's depth. An activity that is no ancestor is seen at its
// first pass, which only a flow's output asks for.
func addressOf(act *flow.Activity, dad DAD) InstanceKey {
	if depth := dad.Depth(); act.Depth >= depth {
		for range act.Depth + 1 - depth {
			dad = dad.Child()
		}
		return InstanceKey{act.Name, dad}
	}
	return InstanceKey{act.Name, dad.Prefix(act.Depth + 1)}
}
