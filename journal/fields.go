package journal

// The tables of fields: each line has a member's key, its place, and the function that writes
// and reads its value. Members are in the order of their keys. An implied one follows from
// earlier members or from the record's place; the keys are chosen so that one walk meets them
// in this order.

func entryFields(c *codec, e *Entry) {
	c.entry = e
	field(c, "a", &e.Activity, text)
	field(c, "ab", &e.Abandoned, number)
	always(c, "as", &e.Kind, kind)
	part(c, "b", &e.Response, responseFields)
	part(c, "bd", &e.Bound, boundFields)
	section(c, "by", e.Build != "" || e.Writer != "", e, authorFields)
	part(c, "c", &e.Close, closeFields)
	field(c, "d", &e.DAD, word)
	list(c, "di", &e.Cancelled, uuid)
	marked(c, "do", &e.Marks)
	part(c, "e", &e.Effect, effectFields)
	optional(c, "el", &e.Elements, elements)
	part(c, "f", &e.Flow, flowFields)
	part(c, "fr", &e.From, fromFields)
	implied(c, "g", &e.GUID, e.impliedGUID(), uuid)
	whole := e.Kind == KindCreated || c.mode != writing // a reader compares what is encoded again
	if whole {
		field(c, "ge", &e.Generation, number)
	}
	payload(c, "i", &e.Input)
	list(c, "j", &e.Joins, ledgerMove)
	field(c, "k", &e.Key, text)
	implied(c, "l", &e.Ledger, e.impliedLedger(), ledger)
	field(c, "nx", &e.Next, uuid)
	optional(c, "o", &e.Open, number)
	part(c, "op", &e.Operator, operatorFields)
	part(c, "p", &e.Parent, parentFields)
	part(c, "q", &e.Result, resultFields)
	implied(c, "r", &e.Receipt, e.impliedReceipt(), ledger)
	parts(c, "rp", &e.Repaired, differenceFields)
	c.sender = sender{e.GUID, e.Activity, e.DAD}
	parts(c, "s", &e.Dispatched, dispatchedFields)
	optional(c, "se", &e.Semaphore, number)
	if whole {
		field(c, "sp", &e.Space, text)
	}
	field(c, "t", &e.Time, number)
	list(c, "tg", &e.Tags, text)
	if whole {
		field(c, "tr", &e.Trace, text)
	}
	parts(c, "up", &e.Updated, updatedFields)
	always(c, "v", &c.version, number)
	parts(c, "w", &e.Waits, waitFields)
	list(c, "wd", &e.CancelledByClose, uuid)
	part(c, "wr", &e.Trouble, troubleFields)
	parts(c, "ws", &e.Undelivered, deliveryFields)
	implied(c, "x", &e.Ended, e.impliedEnd(), uuid)
}

func authorFields(c *codec, e *Entry) {
	field(c, "b", &e.Build, text)
	field(c, "w", &e.Writer, text)
}

func closeFields(c *codec, x *Close) {
	part(c, "e", &x.Error, failureFields)
	payload(c, "o", &x.Output)
	implied(c, "s", &x.State, JobCompleted, word)
	implied(c, "st", &x.Code, codeOf(x.Error), number)
}

// codeOf is the code that follows from the error: without one, that of a success.
func codeOf(f *Failure) int {
	if f == nil {
		return codeOK
	}
	return 0
}

const codeOK = 200

func failureFields(c *codec, f *Failure) {
	field(c, "c", &f.Class, text)
	payload(c, "d", &f.Data)
	field(c, "m", &f.Message, text)
	field(c, "s", &f.Stack, text)
}

func dispatchedFields(c *codec, d *Dispatched) {
	implied(c, "a", &d.Activity, c.sender.activity, text)
	implied(c, "as", &d.Kind, MessageRequest, word)
	field(c, "at", &d.At, big)
	implied(c, "d", &d.DAD, c.impliedDAD(c.entry, d.Kind), word)
	implied(c, "g", &d.GUID, c.impliedID(c.entry, d), uuid)
	field(c, "i", &d.Input, uuid)
	var start JobID
	if d.Kind == MessageStart && c.entry.Kind != KindCreated {
		start = JobID(d.GUID)
	}
	implied(c, "j", &d.Job, start, uuid)
	field(c, "l", &d.Folded, folded)
	field(c, "n", &d.Arrivals, number)
	field(c, "t", &d.Topic, text)
	if d.Folded != 0 {
		c.sender = sender{d.GUID, d.Activity, d.DAD}
	}
}

func troubleFields(c *codec, t *Trouble) {
	field(c, "m", &t.Message, text)
	field(c, "r", &t.Reason, text)
}

func effectFields(c *codec, f *Effect) {
	implied(c, "c", &f.Class, "guarded", text)
	part(c, "e", &f.Error, failureFields)
	implied(c, "f", &f.Fence, 1, big)
	part(c, "fi", &f.Finding, findingFields)
	field(c, "k", &f.Key, digest)
	field(c, "l", &f.Late, truth)
	field(c, "n", &f.N, number)
	field(c, "nm", &f.Name, text)
	field(c, "p", &f.Position, text)
	payload(c, "r", &f.Result)
	part(c, "tk", &f.Taken, takenFields)
	implied(c, "tn", &f.Turn, 1, number)
}

func findingFields(c *codec, x *Finding) {
	field(c, "a", &x.Asked, number)
	field(c, "d", &x.Took, number)
	field(c, "e", &x.Error, text)
	field(c, "n", &x.Note, text)
	field(c, "v", &x.Verifier, text)
}

func fromFields(c *codec, f *From) {
	field(c, "a", &f.Activity, text)
	parts(c, "c", &f.Children, fromChildFields)
	field(c, "d", &f.DAD, word)
	field(c, "ge", &f.Generation, number)
	field(c, "h", &f.Head.Hash, digest)
	field(c, "j", &f.Job, uuid)
	field(c, "r", &f.Reason, text)
	field(c, "rg", &f.RootGeneration, number)
	field(c, "rj", &f.Root, uuid)
	field(c, "s", &f.Head.Seq, number)
	field(c, "w", &f.Who, text)
	part(c, "x", &f.Fork, func(c *codec, x *Fork) {
		field(c, "at", &x.At, number)
		implied(c, "ge", &x.Generation, f.Generation, number)
		implied(c, "j", &x.Job, f.Job, uuid)
	})
}

func fromChildFields(c *codec, x *FromChild) {
	field(c, "a", &x.Activity, text)
	field(c, "d", &x.DAD, word)
	field(c, "el", &x.Element, number)
	field(c, "j", &x.Job, uuid)
	part(c, "of", &x.Of, pauseRefFields)
}

func takenFields(c *codec, t *Taken) {
	field(c, "c", &t.Chain, uuid)
	field(c, "f", &t.Forked, truth)
	field(c, "ge", &t.Generation, number)
	field(c, "s", &t.Seq, number)
}

func flowFields(c *codec, f *FlowRef) {
	field(c, "d", &f.Digest, digest)
	field(c, "n", &f.Name, text)
	field(c, "v", &f.Version, text)
}

func boundFields(c *codec, b *Bound) {
	var request GUID
	if r := c.entry.Response; r != nil {
		request = r.Request
	}
	implied(c, "c", &b.Chain, request, uuid)
	field(c, "h", &b.Head.Hash, digest)
	field(c, "s", &b.Head.Seq, number)
}

func operatorFields(c *codec, o *Operator) {
	field(c, "a", &o.Action, text)
	field(c, "l", &o.Login, text)
	field(c, "r", &o.Reason, text)
	field(c, "w", &o.Who, text)
}

func differenceFields(c *codec, d *Difference) {
	field(c, "c", &d.Column, text)
	field(c, "j", &d.Journal, text)
	field(c, "r", &d.Row, text)
	field(c, "s", &d.Stored, text)
	field(c, "t", &d.Table, text)
}

func parentFields(c *codec, p *Parent) {
	field(c, "a", &p.Activity, text)
	field(c, "aw", &p.Awaited, truth)
	field(c, "d", &p.DAD, word)
	field(c, "dp", &p.Depth, number)
	field(c, "g", &p.Leg1, uuid)
	field(c, "j", &p.Job, uuid)
	field(c, "s", &p.Space, text)
	field(c, "tn", &p.Turn, number)
}

func responseFields(c *codec, r *Response) {
	field(c, "b", &r.Began, number)
	field(c, "by", &r.By, word)
	field(c, "ch", &r.Child, uuid)
	part(c, "e", &r.Error, failureFields)
	field(c, "el", &r.Element, number)
	implied(c, "k", &r.Kind, ResponseTerminal, word)
	field(c, "n", &r.Number, number)
	payload(c, "o", &r.Output)
	part(c, "of", &r.Of, pauseRefFields)
	parts(c, "p", &r.Pauses, pauseFields)
	field(c, "q", &r.Request, uuid)
	field(c, "r", &r.Ref, digest)
	field(c, "ra", &r.RetryAfter, big)
	field(c, "rn", &r.Ran, number)
	field(c, "sg", &r.Signal, uuid)
	implied(c, "st", &r.Code, codeOf(r.Error), number)
	part(c, "tk", &r.Taken, takenFields)
	first := 0
	if !r.Request.IsZero() && r.Kind != ResponseWake {
		first = 1
	}
	implied(c, "tn", &r.Turn, first, number)
	implied(c, "ty", &r.Attempt, r.Turn, number)
	field(c, "u", &r.Undone, truth)
	field(c, "w", &r.Who, text)
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
	part(c, "e", &r.Error, failureFields)
	payload(c, "o", &r.Output)
	implied(c, "st", &r.Code, codeOf(r.Error), number)
	part(c, "tk", &r.Taken, takenFields)
}

func updatedFields(c *codec, u *Updated) {
	row := c.entry.impliedRow()
	implied(c, "g", &u.GUID, row.GUID, uuid)
	field(c, "h", &u.Held, text)
	implied(c, "k", &u.Kind, row.Kind, word)
	field(c, "n", &u.NextAt, big)
	implied(c, "tn", &u.Turn, row.Turn, number)
	implied(c, "ty", &u.Attempt, row.Attempt, number)
}

func waitFields(c *codec, w *Wait) {
	implied(c, "g", &w.GUID, DeriveWakeUp(c.sender.guid, BySignal, ""), uuid)
	field(c, "k", &w.Key, text)
	field(c, "r", &w.Repeat, truth)
	field(c, "t", &w.Topic, text)
}

func deliveryFields(c *codec, d *Delivery) {
	implied(c, "a", &d.Activity, c.entry.Activity, text)
	implied(c, "d", &d.DAD, c.entry.DAD, word)
	field(c, "e", &d.Ends, truth)
	field(c, "n", &d.Number, number)
	field(c, "sg", &d.Signal, uuid)
	field(c, "w", &d.Who, text)
}

// The following values are tuples: arrays in which every element has its place, even if it is
// zero.

func elements(c *codec, e *Elements) {
	c.open()
	at(c, &e.Count, number)
	at(c, &e.Parallel, number)
	at(c, &e.Inputs, sums)
	c.close()
}

func ledgerMove(c *codec, m *LedgerMove) {
	c.open()
	at(c, &m.Activity, text)
	at(c, &m.DAD, word)
	at(c, &m.After, ledger)
	at(c, &m.Arrivals, number)
	c.close()
}
