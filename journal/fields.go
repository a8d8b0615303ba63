package journal

import "github.com/quipu-journal/quipu/canonical"

// The tables of fields: each line is a member, its place, and the way in which
// its value is written and read. Members stand in the order of their keys.

func entryFields(c *codec, e *Entry) {
	field(c, "ab", &e.Abandoned, number)
	field(c, "act", &e.Activity, text)
	section(c, "by", e.Build != "" || e.Writer != "", e, authorFields)
	field(c, "ch", &e.Chain, uuid)
	part(c, "cl", &e.Close, closeFields)
	list(c, "da", &e.Disarmed, uuid)
	field(c, "dad", &e.DAD, word)
	parts(c, "dis", &e.Dispatched, dispatchedFields)
	part(c, "dl", &e.Trouble, troubleFields)
	part(c, "eff", &e.Effect, effectFields)
	optional(c, "el", &e.Elements, elements)
	list(c, "end", &e.Ended, uuid)
	part(c, "fl", &e.Flow, flowFields)
	list(c, "fo", &e.Folded, uuid)
	field(c, "g", &e.GUID, uuid)
	field(c, "gen", &e.Generation, number)
	part(c, "hd", &e.Bound, boundFields)
	payload(c, "in", &e.Input)
	always(c, "job", &e.Job, uuid)
	field(c, "k", &e.Kind, word)
	field(c, "key", &e.Key, text)
	list(c, "led", &e.Ledgers, ledgerMove)
	field(c, "leg", &e.Leg, number)
	list(c, "m", &e.Marks, word)
	part(c, "op", &e.Operator, operatorFields)
	optional(c, "opn", &e.Open, openMove)
	part(c, "pa", &e.Parent, parentFields)
	list(c, "rc", &e.Receipts, receiptMove)
	part(c, "rs", &e.Response, responseFields)
	part(c, "rt", &e.Result, resultFields)
	optional(c, "sem", &e.Semaphore, semaphoreMove)
	field(c, "seq", &e.Seq, number)
	field(c, "sp", &e.Space, text)
	field(c, "t", &e.Time, big)
	field(c, "tr", &e.Trace, text)
	parts(c, "up", &e.Updated, updatedFields)
	always(c, "v", &c.version, number)
	list(c, "wd", &e.Withdrawn, uuid)
	parts(c, "wt", &e.Waits, waitFields)
}

func authorFields(c *codec, e *Entry) {
	field(c, "b", &e.Build, text)
	field(c, "w", &e.Writer, text)
}

func closeFields(c *codec, x *Close) {
	field(c, "c", &x.Code, number)
	part(c, "e", &x.Error, failureFields)
	payload(c, "o", &x.Output)
	field(c, "s", &x.State, word)
}

func failureFields(c *codec, f *Failure) {
	field(c, "c", &f.Class, text)
	payload(c, "d", &f.Data)
	field(c, "m", &f.Message, text)
	field(c, "s", &f.Stack, text)
}

func dispatchedFields(c *codec, d *Dispatched) {
	field(c, "a", &d.Activity, text)
	field(c, "at", &d.At, big)
	field(c, "d", &d.DAD, word)
	field(c, "g", &d.GUID, uuid)
	field(c, "j", &d.Job, uuid)
	field(c, "k", &d.Kind, word)
	field(c, "t", &d.Topic, text)
}

func troubleFields(c *codec, t *Trouble) {
	field(c, "m", &t.Message, text)
	field(c, "r", &t.Reason, text)
}

func effectFields(c *codec, f *Effect) {
	field(c, "c", &f.Class, text)
	part(c, "e", &f.Error, failureFields)
	field(c, "f", &f.Fence, big)
	field(c, "k", &f.Key, digest)
	field(c, "l", &f.Late, truth)
	field(c, "n", &f.N, number)
	field(c, "nm", &f.Name, text)
	field(c, "p", &f.Position, text)
	payload(c, "r", &f.Result)
	field(c, "tn", &f.Turn, number)
}

func flowFields(c *codec, f *FlowRef) {
	field(c, "d", &f.Digest, digest)
	field(c, "n", &f.Name, text)
	field(c, "v", &f.Version, text)
}

func boundFields(c *codec, b *Bound) {
	field(c, "c", &b.Chain, uuid)
	field(c, "h", &b.Head.Hash, digest)
	field(c, "s", &b.Head.Seq, number)
}

func operatorFields(c *codec, o *Operator) {
	field(c, "a", &o.Action, text)
	field(c, "r", &o.Reason, text)
	field(c, "w", &o.Who, text)
}

func parentFields(c *codec, p *Parent) {
	field(c, "a", &p.Activity, text)
	field(c, "aw", &p.Awaited, truth)
	field(c, "d", &p.DAD, word)
	field(c, "g", &p.Leg1, uuid)
	field(c, "j", &p.Job, uuid)
	field(c, "s", &p.Space, text)
	field(c, "tn", &p.Turn, number)
}

func responseFields(c *codec, r *Response) {
	field(c, "by", &r.By, word)
	field(c, "c", &r.Code, number)
	field(c, "ch", &r.Child, uuid)
	part(c, "e", &r.Error, failureFields)
	field(c, "el", &r.Element, number)
	field(c, "k", &r.Kind, word)
	field(c, "n", &r.Number, number)
	payload(c, "o", &r.Output)
	part(c, "of", &r.Of, pauseRefFields)
	parts(c, "p", &r.Pauses, pauseFields)
	field(c, "q", &r.Request, uuid)
	field(c, "r", &r.Ref, digest)
	field(c, "ra", &r.RetryAfter, big)
	field(c, "sg", &r.Signal, uuid)
	field(c, "tn", &r.Turn, number)
	field(c, "ty", &r.Try, number)
	field(c, "u", &r.Undone, truth)
}

func pauseFields(c *codec, p *Pause) {
	field(c, "f", &p.For, big)
	field(c, "fl", &p.Flow, text)
	payload(c, "in", &p.Input)
	field(c, "k", &p.Kind, word)
	field(c, "ky", &p.Key, text)
	field(c, "n", &p.Name, text)
	field(c, "p", &p.Position, text)
	field(c, "t", &p.Topic, text)
	field(c, "v", &p.Version, text)
}

func pauseRefFields(c *codec, p *PauseRef) {
	field(c, "k", &p.Kind, word)
	field(c, "n", &p.Name, text)
	field(c, "p", &p.Position, text)
}

func resultFields(c *codec, r *Result) {
	field(c, "by", &r.By, word)
	field(c, "c", &r.Code, number)
	part(c, "e", &r.Error, failureFields)
	payload(c, "o", &r.Output)
}

func updatedFields(c *codec, u *Updated) {
	field(c, "g", &u.GUID, uuid)
	field(c, "h", &u.Held, text)
	field(c, "k", &u.Kind, word)
	field(c, "n", &u.NextAt, big)
	field(c, "tn", &u.Turn, number)
	field(c, "ty", &u.Try, number)
}

func waitFields(c *codec, w *Wait) {
	field(c, "g", &w.GUID, uuid)
	field(c, "k", &w.Key, text)
	field(c, "r", &w.Repeat, truth)
	field(c, "t", &w.Topic, text)
}

// What follows stands as a tuple: an array in which every element has its place
// and is there even if it is zero.

func elements(c *codec, e *Elements) {
	c.open()
	at(c, &e.Count, number)
	at(c, &e.Parallel, number)
	c.close()
}

func openMove(c *codec, m *OpenMove) {
	c.open()
	at(c, &m.Before, number)
	at(c, &m.After, number)
	c.close()
}

func semaphoreMove(c *codec, m *SemaphoreMove) {
	c.open()
	at(c, &m.Before, number)
	at(c, &m.After, number)
	c.close()
}

func ledgerMove(c *codec, m *LedgerMove) {
	c.open()
	at(c, &m.Activity, text)
	at(c, &m.DAD, word)
	at(c, &m.Before, ledger)
	at(c, &m.After, ledger)
	c.close()
}

func receiptMove(c *codec, m *ReceiptMove) {
	c.open()
	at(c, &m.GUID, uuid)
	at(c, m, receiptBefore)
	at(c, &m.After, ledger)
	at(c, &m.Verdict, word)
	c.close()
}

// receiptNew stands in the place of the ledger before of a created receipt.
const receiptNew = "new"

func receiptBefore(c *codec, m *ReceiptMove) {
	switch {
	case c.mode == reading:
		before := c.in.Text()
		if m.New = string(before) == receiptNew; !m.New {
			var err error
			m.Before, err = parseLedger(before)
			c.hold(err)
		}
	case m.New:
		c.out = canonical.AppendString(c.out, receiptNew)
	default:
		ledger(c, &m.Before)
	}
}
